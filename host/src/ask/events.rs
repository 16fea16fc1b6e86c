//! Splits a stream of server-sent events, and returns the data of each event. This module must not
//! know what the data means.

/// The events of a stream, the last of which may still be incomplete.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The bytes after the last line break.
    line: Vec<u8>,
    /// The data of the event that is not complete yet.
    data: Option<Vec<u8>>,
}

impl Events {
    /// Adds bytes of the stream. Returns the data of each event that ends with them. Events without
    /// data, comments and all other fields are left out.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut ended = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            match line.strip_prefix(b"data:") {
                Some(data) => self.add(data.strip_prefix(b" ").unwrap_or(data)),
                None if line.is_empty() => ended.extend(self.data.take()),
                None => {}
            }
        }
        self.line.extend_from_slice(rest);
        ended
    }

    /// The number of bytes that are kept for the event that is not complete yet.
    pub(super) fn open(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    fn add(&mut self, line: &[u8]) {
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(line);
            }
            None => self.data = Some(line.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        b":\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:b\r\ndata: c\r\n\r\ndata: open";

    #[test]
    fn events_are_found_however_the_stream_is_cut() {
        for size in 1..=STREAM.len() {
            let mut events = Events::default();
            let found: Vec<Vec<u8>> = STREAM
                .chunks(size)
                .flat_map(|chunk| events.push(chunk))
                .collect();
            assert_eq!(found, [b"{\"a\":1}".to_vec(), b"b\nc".to_vec()], "{size}");
            assert_eq!(events.open(), "data: open".len());
        }
    }
}
