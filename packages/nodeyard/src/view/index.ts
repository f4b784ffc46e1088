export type {
  BackingFacts,
  ComponentEntry,
  ImageFacts,
  ImageUploadEntry,
  NodeEntry,
  OwnEntry,
  RequestEntry,
  UnreadableEntry,
  ViewEvent,
} from "./entries.ts";
export { isNewer } from "./image-table.ts";
export { poolKey, poolOf } from "./node-table.ts";
export { agrees, type Backing, type SlotClaim, SlotTable } from "./slot-table.ts";
export { mayBeOf, UnreadableTable } from "./unreadable.ts";
export { View, type ViewOptions } from "./view.ts";
