//! The files of clips. Failures of a file operation are part of the answer; denied rights and unreachable clips are
//! errors of the call.

use pinion_access::{Caller, Method};
use pinion_clip::CallError;
use pinion_clip::data::DataOperation;
use pinion_proto::hub::{DataRequest, DataResponse};
use pinion_status::{Code, Failure};

use super::catalogue::named;
use crate::Hub;
use crate::convert::data_response;

impl Hub {
    pub(crate) async fn data(
        &self,
        caller: &Caller,
        method: Method,
        request: DataRequest,
    ) -> Result<DataResponse, Failure> {
        let name = named(&request.clip_name)?;
        let operation = match (request.operation.trim(), method) {
            ("", Method::DataWrite) => "write",
            ("", _) => "read",
            (operation, _) => operation,
        };
        let right = Method::of_operation(operation)?;
        if method != Method::Data && method != right {
            let message = format!("{method} does not allow operation \"{operation}\"");
            return Err(Failure::invalid(message));
        }
        let route = self.find(caller, right, name)?;
        let operation = match operation {
            "write" => DataOperation::Write {
                content: request.content,
                mime: request.mime.to_string(),
            },
            "list" => DataOperation::List,
            "delete" => DataOperation::Delete,
            "stat" => DataOperation::Stat,
            _ => DataOperation::Read,
        };
        let path = request.path.to_string();
        match route.endpoint.ask_for_data(path, operation).await {
            Ok(answer) => Ok(data_response(Ok(answer))),
            Err(CallError::Unanswered(failure)) => Err(failure),
            Err(CallError::Answered(failure)) if did_not_reach_files(failure.code) => Err(failure),
            Err(CallError::Answered(failure)) => Ok(data_response(Err(failure))),
        }
    }
}

/// Reports whether a failure means that the operation did not reach the files.
fn did_not_reach_files(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::DeadlineExceeded | Code::Unimplemented
    )
}
