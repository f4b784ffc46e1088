export { SliverClient, type Transport } from "./client.ts";
export {
  areApart,
  type Delegation,
  type DocumentInput,
  INSTANTIATIONS,
  type Loan,
  MAX_LOANS,
  type Malformed,
  parseDocument,
  parseSliver,
  type SliverDocument,
  type SliverSpec,
  type SliverSpecInput,
  type SliverVolume,
  TRACE_TAG,
} from "./document.ts";
export { DocumentWriter, type DocumentWriterOptions, type Edit } from "./document-writer.ts";
export { createSigningKeys, readSigningKeys, rotateSigningKeysFile } from "./edge/signing-keys-file.ts";
export { CONTROL_USER, type SshTarget, sshArguments, sshTransport } from "./edge/ssh-transport.ts";
export { collect, commandTransport, unixTransport } from "./edge/transports.ts";
export * from "./errors.ts";
export * from "./grammar.ts";
export { type KeySet, parseKeySet, rotate } from "./key-set.ts";
export { type SliverPaths, sliverPaths } from "./launcher-keys.ts";
export type * from "./report.ts";
export { rawPublicKey, type Signer, signerFromPem, signText, verifyText } from "./signed.ts";
export * from "./signing-keys.ts";
export { CLOCK_TOLERANCE, openTicket, type SliverTicket } from "./ticket.ts";
