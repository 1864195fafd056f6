// Text and bytes as streams.
export class TextDecoderStream extends TransformStream {
  constructor(label, options) {
    const decoder = new TextDecoder(label, options);
    super({
      transform(chunk, controller) {
        const text = decoder.decode(chunk, { stream: true });
        if (text !== "") controller.enqueue(text);
      },
      flush(controller) {
        const text = decoder.decode();
        if (text !== "") controller.enqueue(text);
      },
    });
    this.encoding = decoder.encoding;
  }
}

export class TextEncoderStream extends TransformStream {
  constructor() {
    const encoder = new TextEncoder();
    super({ transform: (chunk, controller) => controller.enqueue(encoder.encode(String(chunk))) });
    this.encoding = "utf-8";
  }
}
