//! Coordinate transformations.

use super::syntax::Object;

/// A transformation of the plane, as PDF writes it.
pub(super) type Matrix = [f64; 6];

pub(super) const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// Applies `a` first, then `b`.
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

/// Reads a transformation from six numbers.
pub(super) fn matrix(numbers: &[Object]) -> Option<Matrix> {
    let mut matrix = IDENTITY;
    for (at, value) in matrix.iter_mut().enumerate() {
        *value = numbers.get(at)?.number()?;
    }
    Some(matrix)
}
