// node:sea: importable, so that code that may not need it loads; every use throws an error.

import { missing } from "pinion:node/internal_errors";

export const getAsset = missing("sea", "getAsset");
export const getRawAsset = missing("sea", "getRawAsset");
export const getAssetAsBlob = missing("sea", "getAssetAsBlob");
export const isSea = () => false;
export default { getAsset, getRawAsset, getAssetAsBlob, isSea };
