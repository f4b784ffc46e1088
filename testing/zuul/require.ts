import { requireTools } from "../skipped.ts";
import { requireZooKeeper } from "../zookeeper/index.ts";

const TOOLS = ["/usr/sbin/mariadbd", "bwrap", "git", "/usr/sbin/sshd", "ssh-keygen", "python3"] as const;

/** For `describe.skipIf(requireZuul())`: why the real Zuul cannot run here, or undefined. */
export const requireZuul = () => requireTools("tests with the real Zuul", ...TOOLS) ?? requireZooKeeper();
