//! Errors of SQLite, converted to [`HistoryError`].

use std::time::Duration;

use rusqlite::ErrorCode;

use super::SqliteLocation;
use crate::HistoryError;

/// Converts the error of an action on a database.
pub(super) fn convert(
    location: &SqliteLocation,
    action: &'static str,
    error: rusqlite::Error,
) -> HistoryError {
    let place = location.place();
    let detail = || match &error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => HistoryError::Busy {
            place,
            waited: Duration::ZERO,
        },
        Some(ErrorCode::DiskFull) => HistoryError::Full { place },
        Some(ErrorCode::SystemIoFailure) if no_room() => HistoryError::Full { place },
        Some(ErrorCode::NotADatabase) => HistoryError::NotADatabase { place },
        Some(ErrorCode::DatabaseCorrupt) => HistoryError::Damaged {
            place,
            detail: detail(),
        },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => HistoryError::ReadOnly {
            place,
            detail: detail(),
        },
        _ => HistoryError::Database {
            action,
            place,
            detail: detail(),
        },
    }
}

/// Reports whether the last failed system call of this thread found the disk full or a file size
/// limit reached.
fn no_room() -> bool {
    let last = std::io::Error::last_os_error().kind();
    matches!(
        last,
        std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::FileTooLarge
            | std::io::ErrorKind::QuotaExceeded
    )
}
