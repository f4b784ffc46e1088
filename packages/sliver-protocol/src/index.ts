export { SliverClient, type Transport } from "./client.ts";
export {
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
} from "./document.ts";
export { DocumentWriter, type DocumentWriterOptions, type Edit } from "./document-writer.ts";
export { commandTransport } from "./edge/command-transport.ts";
export {
  createSigningKeys,
  readSigningKeys,
  rotateSigningKeysFile,
} from "./edge/signing-keys-file.ts";
export { CONTROL_USER, type SshTarget, sshArguments, sshTransport } from "./edge/ssh-transport.ts";
export { unixTransport } from "./edge/unix-transport.ts";
export {
  GrammarError,
  KeyFileError,
  KeySetError,
  SignatureError,
  SliverBusyError,
  SliverContendedError,
  SliverFaultError,
  SliverFencedError,
  SliverOwnedError,
  SliverProtocolError,
  SliverStoreLostError,
  SliverUnreachableError,
  TicketError,
} from "./errors.ts";
export { IMAGE, NAME, NODE_ID, sshKey } from "./grammar.ts";
export { deliverKeys } from "./key-delivery.ts";
export { type KeySet, keyAt, parseKeySet, rotate, type TrustedKey } from "./key-set.ts";
export type {
  LoanRefusal,
  LoanStatus,
  NodeDocument,
  NodeReport,
  Phase,
  Refusal,
  SliverReport,
} from "./report.ts";
export { isResource, MAX_AMOUNT, RESOURCES, type Resource, type Rspec, UNITS } from "./resources.ts";
export { type Purpose, rawPublicKey, type Signer, signerFromPem, signText, verifyText } from "./signed.ts";
export {
  decodeSigningKeys,
  encodeSigningKeys,
  newSigningKeys,
  rotateSigningKeys,
  rotationsAfter,
  type SigningKeys,
  signerOf,
  signsNow,
} from "./signing-keys.ts";
export { CLOCK_TOLERANCE, MAX_TICKET_LIFE, openTicket, type SliverTicket } from "./ticket.ts";
