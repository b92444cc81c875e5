//! How much is a quantity in Kubernetes' notation, such as `64Mi` or `250m`?

/// What the text says, in bytes or cores; `None` where Kubernetes would not accept it or it is negative.
pub fn parse(text: &str) -> Option<f64> {
    let end = text.bytes().position(|byte| !(byte.is_ascii_digit() || byte == b'.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    Some(number * factor(suffix)?).filter(|value| value.is_finite())
}

fn factor(suffix: &str) -> Option<f64> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    let power = |names: [&str; 6]| names.into_iter().position(|name| name == suffix);
    if let Some(index) = power(BINARY) {
        return Some(2_f64.powi(10 * (i32::try_from(index).ok()? + 1)));
    }
    if let Some(index) = power(DECIMAL) {
        return Some(10_f64.powi(3 * (i32::try_from(index).ok()? + 1)));
    }
    match suffix {
        "" => Some(1.0),
        "m" => Some(1e-3),
        "u" => Some(1e-6),
        "n" => Some(1e-9),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some(10_f64.powi(exponent))
        }
    }
}

#[cfg(test)]
mod tests;
