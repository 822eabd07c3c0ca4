//! Cells of CSV tables.

/// A text as a quoted cell. Spreadsheets run a cell that begins like a formula, so an apostrophe marks it as text.
pub(crate) fn csv_cell(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::csv_cell;

    #[test]
    fn a_spreadsheet_runs_no_cell_as_a_formula() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(csv_cell(text), format!("\"'{text}\""));
        }
        assert_eq!(csv_cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
    }

    #[test]
    fn commas_quotes_and_line_breaks_stay_within_their_cell() {
        for (text, cell) in [
            ("", "\"\""),
            ("plain", "\"plain\""),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("a\r\nb", "\"a\r\nb\""),
            ("a=b", "\"a=b\""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }
}
