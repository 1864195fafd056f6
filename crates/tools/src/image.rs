//! Images for models: recognised by their bytes, made small enough to be accepted.
//!
//! An image that cannot be decoded is sent as it is, because the provider may support more formats.
//! One that is too large to be decoded is rejected by the size in its header, before memory is
//! allocated for it.

use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage,
};
use pinion_message::Block;

/// Bytes of a file that are read to recognise an image.
pub(crate) const SNIFF_BYTES: usize = 4100;
/// The largest width and height that models accept, in pixels.
const MAX_SIDE: u32 = 2000;
/// The largest size in base64 that providers accept, less a margin.
const MAX_ENCODED_BYTES: usize = 4_718_592;
/// Tried in order until the image is small enough.
const JPEG_QUALITIES: [u8; 4] = [85, 70, 55, 40];
const SCALES: [f64; 4] = [0.75, 0.5, 0.35, 0.25];
const MIN_SIDE: u32 = 100;
/// The most bytes of pixels that are decoded: 66 million pixels in 24 bits, 50 million with
/// transparency. Scaling takes up to three times as much memory.
const MAX_DECODED_BYTES: u64 = 200_000_000;

/// Held while an image is scaled: the calls of one answer run side by side, and each takes that much memory.
static SCALING: Mutex<()> = Mutex::new(());

/// Image formats that models accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageKind {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl ImageKind {
    pub fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    fn format(self) -> ImageFormat {
        match self {
            Self::Png => ImageFormat::Png,
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Gif => ImageFormat::Gif,
            Self::Webp => ImageFormat::WebP,
        }
    }
}

/// The format of the image that begins with `start`, the first bytes of a file.
pub(crate) fn sniff(start: &[u8]) -> Option<ImageKind> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(ImageKind::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageKind::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageKind::Gif),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some(ImageKind::Webp),
        _ => None,
    }
}

/// An image ready for a model.
#[derive(Debug)]
pub(crate) struct FittedImage {
    pub kind: ImageKind,
    bytes: Vec<u8>,
    /// Sizes before and after, if it was scaled or compressed again.
    resized: Option<((u32, u32), (u32, u32))>,
}

impl FittedImage {
    pub fn unchanged(bytes: Vec<u8>, kind: ImageKind) -> Self {
        Self {
            kind,
            bytes,
            resized: None,
        }
    }

    /// Describes to the model how to convert coordinates in the image to those in the file.
    pub fn note(&self) -> Option<String> {
        let ((width, height), (shown_width, shown_height)) = self.resized?;
        let factor = f64::from(width) / f64::from(shown_width);
        Some(format!(
            "[Image: original {width}x{height}, displayed at {shown_width}x{shown_height}. \
             Multiply coordinates by {factor:.2} to map to original image.]"
        ))
    }

    pub fn into_block(self) -> Block {
        Block::Image {
            data: BASE64.encode(&self.bytes),
            mime_type: self.kind.mime().into(),
        }
    }
}

/// The reason why an image cannot be sent to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableImage {
    /// The bytes are not an image of a known format.
    #[error("is not an image that can be read")]
    Unknown,
    /// Its pixels exceed the memory limit for images.
    #[error("has {width}x{height} pixels, more than can be scaled down")]
    TooManyPixels {
        /// Pixels from left to right.
        width: u32,
        /// Pixels from top to bottom.
        height: u32,
    },
    /// It can only be sent as it is, and models do not accept an image of that size.
    #[error("is too large for models and cannot be scaled down")]
    TooLarge,
}

/// An image block for a model, and a note for the model, such as that the image was scaled.
pub fn prepare_image(bytes: Vec<u8>) -> Result<(Block, Option<String>), UnusableImage> {
    let kind = sniff(&bytes).ok_or(UnusableImage::Unknown)?;
    let fitted = fit(bytes, kind)?;
    let note = fitted.note();
    Ok((fitted.into_block(), note))
}

/// Scales down an image block that is too large for models. Returns the block and a note for the model; `None` if the
/// image stays as it is, also because it cannot be read. Blocks.
pub fn prepare_encoded_image(data: &str) -> Option<(Block, String)> {
    let bytes = BASE64.decode(data).ok()?;
    let (block, note) = prepare_image(bytes).ok()?;
    Some((block, note?))
}

/// Scales and recompresses an image that is too large for models.
pub(crate) fn fit(bytes: Vec<u8>, kind: ImageKind) -> Result<FittedImage, UnusableImage> {
    match shrink(&bytes, kind)? {
        Some(fitted) => Ok(fitted),
        None if fits(&bytes) => Ok(FittedImage::unchanged(bytes, kind)),
        None => Err(UnusableImage::TooLarge),
    }
}

/// `None` for an image that is small enough or cannot be decoded.
fn shrink(bytes: &[u8], kind: ImageKind) -> Result<Option<FittedImage>, UnusableImage> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), kind.format());
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let decoder = match reader.into_decoder() {
        Ok(decoder) => decoder,
        Err(ImageError::Limits(_)) => return Err(UnusableImage::TooLarge),
        Err(_) => return Ok(None),
    };
    let (width, height) = decoder.dimensions();
    if width <= MAX_SIDE && height <= MAX_SIDE && fits(bytes) {
        return Ok(None);
    }
    if decoder.total_bytes() > MAX_DECODED_BYTES {
        return Err(UnusableImage::TooManyPixels { width, height });
    }
    let _one = SCALING.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(scale(decoder))
}

fn scale(mut decoder: impl ImageDecoder) -> Option<FittedImage> {
    let orientation = decoder.orientation().ok()?;
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    image.apply_orientation(orientation);
    let original = (image.width(), image.height());
    let target = fit_sides(original);

    let mut smallest: Option<Encoded> = None;
    for scale in std::iter::once(1.0).chain(SCALES) {
        let size = scaled(target, scale);
        if scale < 1.0 && size.0.min(size.1) < MIN_SIDE {
            break;
        }
        let resized = if size == original {
            image.clone()
        } else {
            image.resize_exact(size.0, size.1, FilterType::Lanczos3)
        };
        let opaque = without_alpha(&resized);
        let first = [png(&resized), jpeg(&opaque, 80)].into_iter().flatten();
        let best = first.min_by_key(|encoded| encoded.bytes.len());
        // Encoded lazily: most images are small enough at once.
        let others = JPEG_QUALITIES
            .iter()
            .filter_map(|&quality| jpeg(&opaque, quality));
        for encoded in best.into_iter().chain(others) {
            let found = fits(&encoded.bytes);
            if smallest
                .as_ref()
                .is_none_or(|least| encoded.bytes.len() < least.bytes.len())
            {
                smallest = Some(Encoded { size, ..encoded });
            }
            if found {
                return smallest.map(|encoded| encoded.fitted(original));
            }
        }
    }
    smallest.map(|encoded| encoded.fitted(original))
}

struct Encoded {
    kind: ImageKind,
    bytes: Vec<u8>,
    size: (u32, u32),
}

impl Encoded {
    fn fitted(self, original: (u32, u32)) -> FittedImage {
        FittedImage {
            kind: self.kind,
            bytes: self.bytes,
            resized: Some((original, self.size)),
        }
    }
}

fn fits(bytes: &[u8]) -> bool {
    bytes.len().div_ceil(3) * 4 <= MAX_ENCODED_BYTES
}

/// The size within the limits with the same aspect ratio: width first, then height.
fn fit_sides((mut width, mut height): (u32, u32)) -> (u32, u32) {
    let part = |side: u32, from: u32| {
        (f64::from(side) * f64::from(MAX_SIDE) / f64::from(from))
            .round()
            .max(1.0) as u32
    };
    if width > MAX_SIDE {
        (width, height) = (MAX_SIDE, part(height, width));
    }
    if height > MAX_SIDE {
        (width, height) = (part(width, height), MAX_SIDE);
    }
    (width, height)
}

fn scaled((width, height): (u32, u32), scale: f64) -> (u32, u32) {
    let part = |side: u32| (f64::from(side) * scale).round().max(1.0) as u32;
    (part(width), part(height))
}

fn png(image: &DynamicImage) -> Option<Encoded> {
    let mut bytes = Vec::new();
    image
        .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
        .ok()?;
    Some(Encoded {
        kind: ImageKind::Png,
        bytes,
        size: (image.width(), image.height()),
    })
}

fn jpeg(image: &RgbImage, quality: u8) -> Option<Encoded> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality)
        .encode_image(image)
        .ok()?;
    Some(Encoded {
        kind: ImageKind::Jpeg,
        bytes,
        size: image.dimensions(),
    })
}

/// JPEG has no transparency; transparent pixels become white rather than black.
fn without_alpha(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [r, g, b, alpha] = image.get_pixel(x, y).0;
        let over_white = |channel: u8| {
            let (channel, alpha) = (u32::from(channel), u32::from(alpha));
            ((channel * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        Rgb([over_white(r), over_white(g), over_white(b)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> Vec<u8> {
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, (x ^ y) as u8]));
        png(&DynamicImage::ImageRgb8(image)).unwrap().bytes
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        for (start, kind) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some(ImageKind::Png)),
            (b"\xff\xd8\xff\xe0", Some(ImageKind::Jpeg)),
            (b"GIF89a", Some(ImageKind::Gif)),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some(ImageKind::Webp)),
            (b"RIFF\x01\x02\x03\x04WAVE", None),
            (b"%PDF-1.7", None),
            (b"", None),
        ] {
            assert_eq!(sniff(start), kind);
        }
    }

    #[test]
    fn a_small_image_is_not_touched() {
        let bytes = picture(20, 10);
        let fitted = fit(bytes.clone(), ImageKind::Png).unwrap();
        assert_eq!((fitted.note(), fitted.bytes), (None, bytes));
    }

    #[test]
    fn a_wide_image_is_scaled_with_a_note_for_the_model() {
        let fitted = fit(picture(2500, 50), ImageKind::Png).unwrap();
        assert_eq!(
            fitted.note().unwrap(),
            "[Image: original 2500x50, displayed at 2000x40. Multiply coordinates by 1.25 to map to \
             original image.]"
        );
        let shown = image::load_from_memory(&fitted.bytes).unwrap();
        assert_eq!((shown.width(), shown.height()), (2000, 40));
        assert_eq!(sniff(&fitted.bytes), Some(fitted.kind));
    }

    #[test]
    fn only_a_large_block_is_replaced() {
        let (block, note) = prepare_encoded_image(&BASE64.encode(picture(2500, 50))).unwrap();
        assert!(matches!(block, Block::Image { .. }) && note.contains("displayed at 2000x40"));
        assert!(prepare_encoded_image(&BASE64.encode(picture(20, 10))).is_none());
        assert!(prepare_encoded_image("no base64").is_none());
    }

    #[test]
    fn both_sides_end_within_the_limit() {
        assert_eq!(fit_sides((4000, 3000)), (2000, 1500));
        assert_eq!(fit_sides((3000, 4000)), (1500, 2000));
        assert_eq!(fit_sides((1000, 9000)), (222, 2000));
        assert_eq!(fit_sides((100_000, 1)), (2000, 1));
    }

    #[test]
    fn what_cannot_be_decoded_is_passed_on() {
        let mut broken = picture(2500, 50);
        broken.truncate(60);
        let fitted = fit(broken.clone(), ImageKind::Png).unwrap();
        assert_eq!((fitted.note(), fitted.bytes), (None, broken));
        let large = [b"\xff\xd8\xff".as_slice(), &vec![0; MAX_ENCODED_BYTES]].concat();
        assert_eq!(
            fit(large, ImageKind::Jpeg).unwrap_err(),
            UnusableImage::TooLarge
        );
    }
}
