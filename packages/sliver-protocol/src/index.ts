export { SliverClient, type Transport } from "./client.ts";
export {
  type Delegation,
  type DocumentInput,
  INSTANTIATIONS,
  type Loan,
  type Malformed,
  parseDocument,
  parseSliver,
  type SliverDocument,
  type SliverSpec,
  type SliverSpecInput,
} from "./document.ts";
export { commandTransport } from "./edge/command-transport.ts";
export { unixTransport } from "./edge/unix-transport.ts";
export {
  GrammarError,
  KeySetError,
  SignatureError,
  SliverFaultError,
  SliverProtocolError,
  SliverUnreachableError,
  TicketError,
} from "./errors.ts";
export { IMAGE, NAME, NODE_ID, sshKey } from "./grammar.ts";
export { type KeySet, keyAt, parseKeySet, rotate, type TrustedKey } from "./key-set.ts";
export type { LoanRefusal, LoanVerdict, NodeReport, Phase, Refusal, SliverReport } from "./report.ts";
export { isResource, MAX_AMOUNT, RESOURCES, type Resource, type Rspec, UNITS } from "./resources.ts";
export { type Purpose, rawPublicKey, type Signer, signerFromPem, signText, verifyText } from "./signed.ts";
export { CLOCK_TOLERANCE, MAX_TICKET_LIFE, openTicket, type SliverTicket } from "./ticket.ts";
