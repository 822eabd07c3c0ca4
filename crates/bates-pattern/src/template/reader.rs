//! A cursor over the characters of a template. Tracks the column for error messages.

use crate::error::{PatternError, Problem};

pub(super) struct Reader<'t> {
    rest: &'t str,
    pub(super) column: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(source: &'t str) -> Self {
        Self { rest: source, column: 1 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest.chars().nth(1)
    }

    pub(super) fn skip(&mut self, characters: usize) {
        let end = self.rest.char_indices().nth(characters).map_or(self.rest.len(), |(at, _)| at);
        self.column += self.rest[..end].chars().count();
        self.rest = &self.rest[end..];
    }

    pub(super) fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.skip(1);
        }
        found
    }

    pub(super) fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|character| !accepts(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.column += taken.chars().count();
        self.rest = rest;
        taken
    }

    pub(super) fn next_visible(&mut self) -> Result<char, PatternError> {
        let found = self.peek().ok_or_else(|| self.expected("a character"))?;
        if is_invisible(found) {
            return Err(PatternError::at(self.column, Problem::InvisibleCharacter(u32::from(found))));
        }
        self.skip(1);
        Ok(found)
    }

    pub(super) fn expected(&self, expected: &str) -> PatternError {
        let found = match self.peek() {
            Some(found) => format!("{found:?}"),
            None => "the end of the template".to_owned(),
        };
        PatternError::at(self.column, Problem::Expected { expected: expected.into(), found: found.into() })
    }

    /// An error about `word`, which began at `column`.
    pub(super) fn expected_instead_of(&self, column: usize, word: &str, expected: &str) -> PatternError {
        if word.is_empty() {
            return self.expected(expected);
        }
        let found = format!("{word:?}").into();
        PatternError::at(column, Problem::Expected { expected: expected.into(), found })
    }
}

/// Control characters, all spaces except U+0020, invisible marks, and marks that change the direction of text.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || character.is_whitespace() && character != ' '
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        )
        || matches!(character, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
        || matches!(character, '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
