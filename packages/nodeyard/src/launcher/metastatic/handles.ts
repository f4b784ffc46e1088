import type { Scanner } from "@nodeyard/driver";
import type { SliverAccess } from "../../slivers/index.ts";
import type { RecordHandles } from "../held-records.ts";

/** For what gives nodes their slots. */
export interface SlotHandles extends RecordHandles {
  readonly scan: Scanner;
  readonly installation: string;
  readonly slivers?: SliverAccess;
}
