use sinew::pubsub::keyexpr::{KeyExpr, KeyExprError, canonize};

/// Two strings with a zero byte between them.
///
/// What is refused stays refused, the canonical form is canonical, sets behave as sets, and
/// strings that nobody has checked lead to some answer.
pub fn keyexpr(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (left, right) = text.split_once('\0').unwrap_or((text, text));
    let (mut place, mut other) = (vec![0; left.len()], vec![0; right.len()]);
    let pair = (canonize(left, &mut place), canonize(right, &mut other));
    let (a, b) = match pair {
        (Ok(a), Ok(b)) => (a, b),
        _ => (KeyExpr::unchecked(left), KeyExpr::unchecked(right)),
    };
    let (meet, includes, included) = (a.intersects(b), a.includes(b), b.includes(a));
    match pair {
        (Ok(_), Ok(_)) => {
            assert_eq!(b.intersects(a), meet);
            assert!(a.intersects(a) && a.includes(a));
            assert!(meet || !(includes || included));
            assert_eq!(includes && included, a == b);
            for (key, text) in [(a, left), (b, right)] {
                assert_eq!(KeyExpr::new(&key), Ok(key));
                match KeyExpr::new(text) {
                    Ok(same) => assert_eq!(same, key),
                    Err(error) => assert_eq!(error, KeyExprError::NotCanonical),
                }
                let (prefix, rest) = key.concrete_prefix();
                assert_eq!(format!("{prefix}{rest}"), key.as_str());
                assert!(!prefix.contains('*') && (rest.is_empty() || key.is_wild()));
            }
        }
        (left_key, right_key) => {
            for (key, text) in [(left_key, left), (right_key, right)] {
                assert_eq!(
                    key.is_err(),
                    KeyExpr::new(text).is_err_and(|e| e != KeyExprError::NotCanonical)
                );
            }
        }
    }
}
