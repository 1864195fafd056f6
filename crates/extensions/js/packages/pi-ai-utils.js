// `pi-ai/utils/…`: all helpers of `pi-ai` in one module.

export * from "pinion:packages/pi-ai";
export * from "pinion:packages/ai_utils";
