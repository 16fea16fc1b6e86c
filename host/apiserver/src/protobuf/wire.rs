//! Protobuf on the wire.
//!
//! Owns tags, numbers and lengths, read and written. Must not know which messages there are.

use crate::status::ApiError;

/// The value of a field as it is on the wire.
pub(super) enum Wire<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

pub(super) fn bad(why: impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized: protobuf: {why}"
    ))
}

/// The fields of a message, in the order in which they are written.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    /// Reads the next field. No Kubernetes type uses groups or fixed numbers of 32 bits.
    fn read(&mut self) -> Result<(u64, Wire<'a>), ApiError> {
        let tag = varint(&mut self.0)?;
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut self.0)?),
            1 => {
                let bytes = take(&mut self.0, 8)?;
                Wire::Double(f64::from_le_bytes(bytes.try_into().map_err(bad)?))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).map_err(bad)?;
                Wire::Bytes(take(&mut self.0, length)?)
            }
            other => return Err(bad(format!("unexpected wire type {other}"))),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], ApiError> {
    let split = bytes.split_at_checked(length);
    let (value, rest) = split.ok_or_else(|| bad("unexpected end"))?;
    *bytes = rest;
    Ok(value)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, ApiError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or_else(|| bad("unexpected end"))?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(bad("a number is too long"))
}

/// Writes a number.
pub(super) fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

/// Writes a floating-point number.
pub(super) fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    put_varint(out, (field << 3) | 1);
    out.extend(value.to_le_bytes());
}

/// Writes a text, or bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    put_varint(out, (field << 3) | 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes a message whose content `write` appends.
pub(super) fn put_message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, (field << 3) | 2);
    let start = out.len();
    write(out);
    // The length stands before the content, but is known only after it.
    let end = out.len();
    put_varint(out, (end - start) as u64);
    let size = out.len() - end;
    if let Some(content) = out.get_mut(start..) {
        content.rotate_right(size);
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
