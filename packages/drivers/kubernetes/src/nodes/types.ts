import type { LabelConfig, Provider, Resources, Tag } from "@nodeyard/driver";
import type { KubeLabelOwn } from "../config.ts";

/** Operations that differ between nodes with their own namespace and nodes that share a project. Errors are those of the client. */
export interface Nodes
  extends Pick<Provider, "create" | "remove" | "find" | "list" | "removeResource" | "quota"> {
  need(label: LabelConfig<KubeLabelOwn>, signal: AbortSignal): Promise<Resources>;
  /** Rejects when a ready node is gone or its pod has ended. */
  stands(tag: Tag, signal: AbortSignal): Promise<unknown>;
  /** Called before a ready node is assigned: `connection_port` with a new token, or undefined when the present token lasts long enough. */
  renew(tag: Tag, signal: AbortSignal): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** Checks that the credential has the rights that it needs. */
  open(signal: AbortSignal): Promise<void>;
  close(): void;
}
