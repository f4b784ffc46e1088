import { expect, it } from "vitest";
import { errorsPage } from "../errors-page.ts";
import { workspaceOf } from "./tree.ts";

it("lists every code once, with its class and the class's doc comment", () => {
  const page = errorsPage(
    workspaceOf({
      "packages/base/model/src/a.ts": `
        /** It went | away. */
        export class Lost extends NodeyardError { constructor() { super("model.lost", "lost"); } }
        export class Kind extends NodeyardError { constructor(kind: string) { super(\`model.\${kind}\`, "kind"); } }
        export class Base extends NodeyardError {}
        throw new NodeyardError("tree.made", \`node \${node.id} is on \` + \`the spot: \${why(1, "x")}\`, { cause });
        // new NodeyardError("tree.comment", "no")
        log("model.text");`,
      "packages/base/model/test/a.test.ts": 'new NodeyardError("model.test", "no");',
    }),
  );
  expect(page.split("\n").filter((line) => line.startsWith("| `") || line.startsWith("## "))).toEqual([
    "## model",
    "| `model.*` | Kind | kind |",
    "| `model.lost` | Lost | It went \\| away. |",
    "## tree",
    "| `tree.made` |  | node … is on the spot: … |",
  ]);
});
