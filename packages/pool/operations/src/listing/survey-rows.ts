import { type Column, columns } from "./columns.ts";
import { about, cloudId, oneOf, type Shaped, text } from "./fields.ts";

/** A difference, for programs. */
export const differenceShape = {
  provider: text,
  kind: about(
    oneOf(["leaked", "vanished", "foreign", "elsewhere", "left"]),
    "leaked: ours, and without a record. vanished: a ready node without a machine. foreign: of another installation with a provider of this name. elsewhere: a node whose machine is where the provider does not look. left: a node of a provider that is not configured, and that no launcher serves",
  ),
  type: about(text, "of the resource, such as instance or port"),
  id: cloudId,
  node: text,
  action: oneOf(["delete", "take-out", "keep"]),
  why: text,
};
/** One difference between a cloud and the records, and what a sweep does about it. */
export type Difference = Shaped<typeof differenceShape>;

/** "A Sweep Would": what a launcher's sweep would decide by the same records and the same answer of the cloud. */
export const differenceColumns: readonly Column[] = columns({
  Provider: "provider",
  What: "kind",
  Type: "type",
  ID: "id",
  Node: "node",
  "A Sweep Would": "action",
  Because: "why",
});

/** An image that no upload stands for, for programs. */
export const alienImageShape = {
  provider: text,
  name: text,
  id: cloudId,
  upload_id: text,
  kind: about(
    oneOf(["leaked", "foreign"]),
    "leaked: ours, and without a record. foreign: of another installation with a provider of this name",
  ),
};

/** Nodepool's columns Provider, Name and Image ID come first. */
export const alienImageColumns: readonly Column[] = columns({
  Provider: "provider",
  Name: "name",
  "Image ID": "id",
  "Upload ID": "upload_id",
  What: "kind",
});
