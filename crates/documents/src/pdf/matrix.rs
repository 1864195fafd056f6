//! Where things are on a page.

use super::syntax::Object;

/// A transformation of the plane, as PDF writes it.
pub(super) type Matrix = [f64; 6];

/// What changes nothing.
pub(super) const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `a`, then `b`.
pub(super) fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

/// The transformation six numbers make.
pub(super) fn matrix(numbers: &[Object]) -> Option<Matrix> {
    let mut matrix = IDENTITY;
    for (at, value) in matrix.iter_mut().enumerate() {
        *value = numbers.get(at)?.number()?;
    }
    Some(matrix)
}
