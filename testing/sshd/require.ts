import { requireTools } from "../skipped.ts";

export const SSHD = "/usr/sbin/sshd";

/** For `describe.skipIf(requireSshd())`: why there is no real sshd, or undefined. */
export const requireSshd = () => requireTools("SSH tests", SSHD, "ssh-keygen");
