//! Parameters and results of statements.

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::Arg;
use crate::sql::{Cell, Row};

/// A parameter that can be sent to another thread.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
    Null,
}

pub(super) fn owned(args: &[Arg<'_>]) -> Vec<Value> {
    let value = |arg: &Arg<'_>| match *arg {
        Arg::Text(text) => Value::Text(text.to_owned()),
        Arg::Int(number) => Value::Int(number),
        Arg::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Arg::Null => Value::Null,
    };
    args.iter().map(value).collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
            Self::Null => Ok(IsNull::Yes),
        }
    }

    // The statements are constants of this crate, and a test runs each of them, so the types fit.
    fn accepts(kind: &Type) -> bool {
        [Type::TEXT, Type::INT8, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

pub(super) fn row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    let cells = row.columns().iter().enumerate().map(|(index, column)| {
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Cell::Int),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(index)?
                .map(|number| Cell::Int(number.into())),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Cell::Bytes),
            Type::VOID => None,
            _ => row.try_get::<_, Option<String>>(index)?.map(Cell::Text),
        }
        .unwrap_or(Cell::Null))
    });
    cells.collect::<Result<_, _>>().map(Row)
}
