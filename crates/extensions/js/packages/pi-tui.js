// `pi-tui`: drawing on a terminal. Without one, components still produce their lines.

export { Box, CURSOR_MARKER, CancellableLoader, Container, Loader, Spacer, Text, TruncatedText, isFocusable } from "pinion:packages/tui_components";
export {
  HStack, MouseRegion, ScrollView, VStack, compositeTuiLine, getNativeClipboard, getOsc8LinkAtColumn, isViewportTUI,
  parseOsc11BackgroundColor, parseTerminalColorSchemeReport, stripTerminalSequences,
} from "pinion:packages/tui_layout";
export { SelectList, SettingsList } from "pinion:packages/tui_lists";
export { Editor, Input } from "pinion:packages/tui_input";
export { Markdown } from "pinion:packages/tui_markdown";
export {
  Key, KeybindingsManager, TUI_KEYBINDINGS, decodeKittyPrintable, getKeybindings, isKeyRelease, isKeyRepeat, isKittyProtocolActive,
  matchesKey, parseKey, setKeybindings, setKittyProtocolActive,
} from "pinion:packages/tui_keys";
export { fuzzyFilter, fuzzyMatch } from "pinion:packages/tui_fuzzy";
export { sliceByColumn, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "pinion:packages/tui_text";
export {
  CombinedAutocompleteProvider, Image, ProcessTerminal, StdinBuffer, TUI, allocateImageId, calculateImageRows, deleteAllKittyImages,
  deleteKittyImage, detectCapabilities, encodeITerm2, encodeKitty, getCapabilities, getCellDimensions, getGifDimensions,
  getImageDimensions, getJpegDimensions, getPngDimensions, getWebpDimensions, hyperlink, imageFallback, renderImage,
  resetCapabilitiesCache, setCapabilities, setCapabilityOverrides, setCellDimensions,
} from "pinion:packages/tui_terminal";
