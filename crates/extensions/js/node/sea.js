// node:sea: importable, so that code which may not need it loads; what is used says that it is not here.

import { missing } from "pinion:node/internal_errors";

export const getAsset = missing("sea", "getAsset");
export const getRawAsset = missing("sea", "getRawAsset");
export const getAssetAsBlob = missing("sea", "getAssetAsBlob");
export const isSea = () => false;
export default { getAsset, getRawAsset, getAssetAsBlob, isSea };
