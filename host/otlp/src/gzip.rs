//! The format gzip (RFC 1952), for bodies of requests. This module must not know what a body says.

use miniz_oxide::deflate::compress_to_vec;

/// How hard it tries, of 10. A batch takes a millisecond, on the thread of watches and writes, and
/// becomes a tenth; more effort saves little.
const LEVEL: u8 = 1;

/// The head: the format's mark, deflate, no name and no time, of an unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Returns the body in gzip's format.
pub(crate) fn compressed(body: &[u8]) -> Vec<u8> {
    let mut all = HEAD.to_vec();
    all.extend(compress_to_vec(body, LEVEL));
    all.extend(crc32fast::hash(body).to_le_bytes());
    // As the format has it: the lower 32 bits.
    all.extend((body.len() as u32).to_le_bytes());
    all
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn gzip_itself_reads_it() {
        let body = "a span and another span, ".repeat(4096);
        let packed = compressed(body.as_bytes());
        assert!(packed.len() < body.len() / 10, "{}", packed.len());
        for (body, packed) in [(body, packed), (String::new(), compressed(b""))] {
            let mut gzip = Command::new("gzip")
                .args(["--decompress", "--stdout"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // It is shorter than the pipe.
            gzip.stdin.take().unwrap().write_all(&packed).unwrap();
            let output = gzip.wait_with_output().unwrap();
            assert!(output.status.success());
            assert_eq!(output.stdout, body.into_bytes());
        }
    }
}
