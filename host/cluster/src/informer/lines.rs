//! Splits a stream of bytes into lines. A line within one piece of the stream is not copied.

/// Maximum length of a line in bytes: an event of the largest object. etcd accepts requests of 1.5
/// MiB by default; this leaves room for ten times a large setting.
pub(super) const LINE_MAX: usize = 64 << 20;

/// Capacity of the buffer that is kept from line to line: more than most objects, small enough for
/// a hundred informers.
const KEEP: usize = 64 << 10;

/// The beginning of an incomplete line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
}

/// A line is longer than `LINE_MAX`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    /// Passes on each line that ends in `piece`, without the line end; empty lines are skipped.
    pub(super) fn push<E: From<TooLong>>(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = &rest[..end];
            if self.partial.is_empty() {
                call(line, &mut each)?;
            } else {
                self.partial.extend_from_slice(line);
                call(&self.partial, &mut each)?;
                self.partial.clear();
                self.partial.shrink_to(KEEP);
            }
            rest = &rest[end + 1..];
        }
        if self.partial.len() + rest.len() > LINE_MAX {
            return Err(TooLong.into());
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }
}

fn call<E>(line: &[u8], each: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let line = line.trim_ascii();
    if line.is_empty() { Ok(()) } else { each(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = "{\"a\":1}\n\n{\"b\":\"é\"}\r\n{\"c\":3}\nrest";
        for size in 1..=text.len() {
            let (mut lines, mut got) = (Lines::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                lines
                    .push::<TooLong>(piece, |line| {
                        got.push(String::from_utf8(line.to_vec()).unwrap());
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!(
                got,
                ["{\"a\":1}", "{\"b\":\"é\"}", "{\"c\":3}"],
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; LINE_MAX / 4];
        let results: Vec<_> = (0..5)
            .map(|_| lines.push::<TooLong>(&piece, |_| Ok(())))
            .collect();
        assert_eq!(results[3], Ok(()));
        assert_eq!(results[4], Err(TooLong));
    }
}
