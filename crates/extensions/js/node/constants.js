// node:constants

import { constants as fs } from "pinion:node/internal_fs";
import { signals } from "pinion:node/internal_signals";
import { constants as os } from "pinion:node/os";

const constants = { ...os.errno, ...os.priority, ...signals, ...fs };
export const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_SYNC, S_IFMT, S_IFREG, S_IFDIR, S_IFLNK, F_OK, R_OK, W_OK, X_OK, SIGINT, SIGTERM, SIGKILL, SIGHUP, ENOENT, EEXIST, EACCES, EPERM } = constants;
export default constants;
