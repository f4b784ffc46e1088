import type { LabelConfig, Provider, Resources, Tag } from "@nodeyard/driver";
import type { KubeLabelOwn } from "../config.ts";

/** What differs between nodes with a namespace of their own and nodes that share one; errors as the client throws them. */
export interface Nodes
  extends Pick<Provider, "create" | "remove" | "find" | "list" | "removeResource" | "quota"> {
  need(label: LabelConfig<KubeLabelOwn>, signal: AbortSignal): Promise<Resources>;
  /** Rejects when a ready node is gone, or its pod has ended. */
  stands(tag: Tag, signal: AbortSignal): Promise<void>;
  /** Before a ready node is handed out: `connection_port` with a new token; undefined: the present one lasts. */
  renew(tag: Tag, signal: AbortSignal): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** Finds out whether the credential may do what it has to. */
  open(signal: AbortSignal): Promise<void>;
  close(): void;
}
