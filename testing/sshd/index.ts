export { requireSshd } from "./require.ts";
export { type HostKeyType, type Sshd, type SshdOptions, startSshd } from "./server.ts";
