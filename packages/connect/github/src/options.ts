import { idleField, Keys, runnerFields } from "@nodeyard/connect";
import { z } from "zod";

const app = z.strictObject({
  "client-id": z.string().min(1).describe("client id, or the number of the App"),
  "installation-id": z.int().min(1),
  "key-file": z.string().min(1).describe("private key in PEM"),
});

/** Keys of a section of GitHub. */
export const options = z
  .strictObject({
    url: Keys.url.describe(
      "of an organization, a repository (OWNER/REPOSITORY) or an enterprise (enterprises/NAME)",
    ),
    "token-file": Keys.secretFile.optional().describe("file with a personal access token"),
    app: app.optional().describe("a GitHub App, in place of a token"),
    "scale-set": z
      .string()
      .min(1)
      .max(64)
      .describe("name of the scale set, which is made if it is not there"),
    group: z.string().min(1).default("default").describe("runner group"),
    "runs-on": z.array(z.string().min(1)).min(1).optional().describe("labels of the set; default: its name"),
    ...runnerFields,
    time: Keys.seconds.default(21_600).describe("seconds that a node may be kept, waiting included"),
    start: z
      .string()
      .min(1)
      .default("/opt/actions-runner/run.sh")
      .describe("command of sh that starts the runner on a node; ACTIONS_RUNNER_INPUT_JITCONFIG is set"),
    idle: idleField,
    full: Keys.seconds
      .default(60)
      .describe(
        "seconds that a runner waits for its node before GitHub is told that there is no room for more",
      ),
  })
  .refine(
    (given) => (given.app === undefined) !== (given["token-file"] === undefined),
    "must have token-file or app, one of them",
  );
export type Options = z.output<typeof options>;
