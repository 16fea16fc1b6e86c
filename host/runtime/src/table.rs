//! Tables in kubectl's style: upper-case headers, columns as wide as their widest cell, three
//! spaces between columns.

/// The text of an empty cell.
const NONE: &str = "<none>";

/// Formats rows under headers, without a final line break. Returns an empty text if there are no
/// rows.
pub fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let shown = |cell: &String| match cell.as_str() {
        "" => NONE.to_owned(),
        text => vmhost_core::one_line(text).into_owned(),
    };
    let mut lines = vec![heads.map(ToOwned::to_owned)];
    lines.extend(rows.iter().map(|row| row.each_ref().map(shown)));
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let lines: Vec<String> = lines
        .iter()
        .map(|line| {
            let cells = line.iter().zip(widths);
            let text: String = cells
                .map(|(cell, width)| format!("{cell:<width$}   "))
                .collect();
            text.trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}

/// Formats a size like a Kubernetes quantity, rounded: `1.5Mi`.
pub fn bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["", "Ki", "Mi", "Gi"] {
        if size < 1024.0 {
            return match unit {
                "" => format!("{bytes}"),
                unit => format!("{size:.1}{unit}"),
            };
        }
        size /= 1024.0;
    }
    format!("{size:.1}Ti")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [
            ["a".to_owned(), "bcd".to_owned()],
            ["long\nname".to_owned(), String::new()],
        ];
        assert_eq!(
            table(["NAME", "X"], &rows),
            "NAME        X\na           bcd\nlong name   <none>"
        );
        assert_eq!(table(["NAME"], &[]), "");
    }

    #[test]
    fn sizes_are_short() {
        for (size, text) in [
            (0, "0"),
            (1023, "1023"),
            (1536, "1.5Ki"),
            (3 << 20, "3.0Mi"),
            (5 << 40, "5.0Ti"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }
}
