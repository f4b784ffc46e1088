import { fileURLToPath } from "node:url";

/** The program as it is in this checkout, with its development dependencies: the file that keeps compiled code, which halves each start. */
export const SOURCE = fileURLToPath(
  new URL("../packages/nodeyard/cli/src/bin/nodeyard.cjs", import.meta.url),
);
/** CI names the program as npm installs it, which starts faster (docs/design/ci-time.md). For suites that wait for the build. */
export const PROGRAM = process.env.NODEYARD_PROGRAM || SOURCE;
