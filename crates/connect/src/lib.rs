//! Connect and gRPC over HTTP/1.1 and HTTP/2.
