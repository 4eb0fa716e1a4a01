//! Key expressions: what a sample is about, and what a subscriber listens to.
//!
//! Chunks joined by slashes, UTF-8, without `#` and `?`:
//!
//! | chunk | matches |
//! |---|---|
//! | `*` | exactly one chunk |
//! | `**` | any number of chunks, also none |
//! | `$*` inside a chunk | any number of characters of that chunk, also none |
//! | `@` and more | itself and nothing else: no wildcard ever matches such a *verbatim* chunk |
//! | any other | itself |
//!
//! Many strings can mean the same set of keys; one of them is the *canonical* form, and only that
//! is allowed on the wire. A [`KeyExpr`] is valid and canonical, so equal sets are equal strings.
//!
//! ```
//! use sinew::pubsub::keyexpr::KeyExpr;
//!
//! const ARMS: KeyExpr = KeyExpr::from_static("robot/*/arm/**"); // checked by the compiler
//! let joint = KeyExpr::new("robot/7/arm/joint/2")?;
//! assert!(ARMS.includes(joint) && joint.intersects(ARMS));
//! # Ok::<(), sinew::pubsub::keyexpr::KeyExprError>(())
//! ```
//!
//! # Sets
//! Everything here is as sets say: two expressions intersect where a key matches both, and one
//! includes another where each key of the other matches it. One thing is by definition: `**` counts
//! as matching no chunk at all also where it stands alone, though no key is empty, so `**` includes
//! `*/**` and not the other way round.
//!
//! # Work
//! No heap, no recursion. [`KeyExpr::new`] looks at each byte once. [`KeyExpr::intersects`] and
//! [`KeyExpr::includes`] compare at most `n * m` pairs of bytes for lengths of `n` and `m`,
//! whatever a hostile peer makes of them; usual ones take some `n + m`.

mod canon;
mod check;
mod matching;

use core::fmt;
use core::ops::Deref;

use matching::Relation;

/// Why a string is no key expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyExprError {
    /// Nothing at all, a slash at either end, or two in a row. Remove it.
    EmptyChunk,
    /// `#` or `?`, which separate other things from a key. Take another character.
    Forbidden,
    /// A `$` without `*` behind it. Take another character, or write `$*`.
    Dollar,
    /// A `*` beside other characters. Write `$*` for some characters of a chunk.
    Star,
    /// Valid, but there is another way to write it that counts. Use [`canonize`].
    NotCanonical,
    /// It does not fit the place given, or the wire, which carries 65,535 bytes. Give as many bytes as
    /// the string has, or write it shorter.
    TooLong,
}

impl fmt::Display for KeyExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyChunk => "an empty chunk: a slash at an end, or two in a row",
            Self::Forbidden => "# or ? in a key expression",
            Self::Dollar => "a $ without * behind it",
            Self::Star => "a * beside other characters: write $*",
            Self::NotCanonical => "a key expression that is not in canonical form",
            Self::TooLong => "a key expression that is longer than its place, or than 65,535 bytes",
        })
    }
}

impl core::error::Error for KeyExprError {}

/// A key expression that is valid and canonical.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyExpr<'k>(&'k str);

impl<'k> KeyExpr<'k> {
    /// Checks a string: [`KeyExprError`] says what is wrong.
    pub const fn new(key: &'k str) -> Result<Self, KeyExprError> {
        match check::check(key.as_bytes()) {
            Ok(()) => Ok(Self(key)),
            Err(error) => Err(error),
        }
    }

    /// A constant: where it is no canonical key expression, it does not compile.
    ///
    /// # Panics
    /// Outside of a `const`, where the string is no canonical key expression: use
    /// [`KeyExpr::new`] there.
    pub const fn from_static(key: &'static str) -> KeyExpr<'static> {
        match KeyExpr::new(key) {
            Ok(key) => key,
            Err(_) => panic!("not a canonical key expression"),
        }
    }

    /// Takes what was checked before, for example when it came into the table it is read from.
    ///
    /// Of a string that is no canonical key expression, what it intersects and includes is
    /// unspecified. Nothing worse comes of it.
    pub const fn unchecked(key: &'k str) -> Self {
        Self(key)
    }

    /// The string.
    pub const fn as_str(self) -> &'k str {
        self.0
    }

    /// Whether there is a wildcard in it. Without one it is a key, which samples can have.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn is_wild(self) -> bool {
        self.0.bytes().any(|byte| byte == b'*')
    }

    /// Whether a key exists that matches both.
    pub fn intersects(self, other: KeyExpr<'_>) -> bool {
        self.related(other, Relation::Intersects)
    }

    /// Whether each key that matches `other` matches this one too.
    pub fn includes(self, other: KeyExpr<'_>) -> bool {
        self.related(other, Relation::Includes)
    }

    fn related(self, other: KeyExpr<'_>, relation: Relation) -> bool {
        if self == other {
            return true;
        }
        if !self.is_wild() && (relation == Relation::Includes || !other.is_wild()) {
            return false;
        }
        matching::related(self.0.as_bytes(), other.0.as_bytes(), relation)
    }

    /// The chunks before the first wildcard, and the rest with its slash: what is worth
    /// declaring to a peer once, and what is said each time.
    ///
    /// `demo/**` is `demo` and `/**`; `**` is nothing and `**`; a key is itself and nothing.
    pub fn concrete_prefix(self) -> (&'k str, &'k str) {
        let mut slash = 0;
        for (at, byte) in self.0.bytes().enumerate() {
            match byte {
                b'/' => slash = at,
                // The wildcard's chunk begins behind the last slash before it.
                b'*' => return self.0.split_at_checked(slash).unwrap_or(("", self.0)),
                _ => {}
            }
        }
        (self.0, "")
    }
}

impl Deref for KeyExpr<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        self.0
    }
}

impl AsRef<str> for KeyExpr<'_> {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl fmt::Display for KeyExpr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl<'k> TryFrom<&'k str> for KeyExpr<'k> {
    type Error = KeyExprError;
    fn try_from(key: &'k str) -> Result<Self, KeyExprError> {
        Self::new(key)
    }
}

/// Writes the canonical form of a valid key expression into `place`; it is never longer.
///
/// ```
/// let mut place = [0; 32];
/// let key = sinew::pubsub::keyexpr::canonize("a/$*$*/**/**/*", &mut place)?;
/// assert_eq!(key.as_str(), "a/*/*/**");
/// # Ok::<(), sinew::pubsub::keyexpr::KeyExprError>(())
/// ```
pub fn canonize<'p>(key: &str, place: &'p mut [u8]) -> Result<KeyExpr<'p>, KeyExprError> {
    match check::check(key.as_bytes()) {
        Ok(()) | Err(KeyExprError::NotCanonical) => canon::canonize(key, place).map(KeyExpr),
        Err(error) => Err(error),
    }
}
