import { type Command, Option } from "commander";
import { parseDuration, parseImage } from "../arguments.ts";
import { awaitBuild, imagePaused } from "../await-build.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { configuredImage, demandKnown, imageIn } from "../names.ts";
import type { Session } from "../session.ts";

/** Milliseconds; above any build-timeout: its default is 8 hours. */
const DAY_MS = 86_400_000;

interface BuildOptions {
  readonly wait?: boolean;
  /** Milliseconds. */
  readonly timeout: number;
  readonly json?: boolean;
}

/** `nodeyard image-build`: without `--wait` it ends when the request stands in the tree. */
export function defineImageBuild(command: Command, session: Session): void {
  command
    .argument("<image>", "name of a diskimage", parseImage)
    .option("--wait", "wait until the build ends; exit code 1 if it failed")
    .addOption(
      new Option("--timeout <duration>", "with --wait: stop waiting after this time, exit code 124")
        .argParser(parseDuration)
        .default(DAY_MS, "1d"),
    )
    .option("--json", "an object on stdout: image, build and state")
    .action(async (image: string, options: BuildOptions) => {
      // Before the tree is opened: a configuration that is named and lacks the image is a mistake that nothing else would report.
      const configured = await configuredImage(session, image);
      if (configured?.paused)
        throw new CommandError(
          "cli.diskimage_paused",
          `diskimage ${image} is paused by its configuration; remove "pause: true" there`,
        );
      await withBackend(session, (backend) =>
        ask(session, backend, image, options, configured !== undefined),
      );
    });
}

/** Requests the build, and with `wait` waits for it. Rejects with CommandError for an image that is unknown, or whose build failed. */
async function ask(
  session: Session,
  backend: Backend,
  image: string,
  { wait = false, timeout, json }: BuildOptions,
  isConfigured: boolean,
): Promise<void> {
  const { io } = session;
  const known = await imageIn(backend, image);
  await demandKnown(backend, isConfigured || known !== undefined, image);
  const paused = known?.paused === true;
  // Nothing to wait for: refused before a request is left behind that would start a build at the end of the pause.
  if (paused && wait) throw imagePaused(image, "nothing was requested");
  // First the builds, then the request: the other way round a build that answers it at once would count as old.
  const { rows } = await backend.list("list_builds", { image });
  const before = new Set(rows.map(({ id }) => id));
  await backend.call("build_image", { path: { id: image } });
  if (paused)
    io.err(`nodeyard: ${image} is paused: the request waits for "nodeyard image-unpause ${image}"\n`);
  const build = !wait ? undefined : await awaitBuild(session, backend, image, before, timeout);
  const state = build?.state ?? "requested";
  if (json === true) printJson(io, { image, build: build?.id.slice(image.length + 1) ?? null, state });
  else if (build?.state === "ready") io.out(`${build.id} is ready\n`);
  if (build?.state === "failed")
    throw new CommandError(
      "cli.build_failed",
      `build ${build.id} failed; ${build.id}.log in build-log-dir of ${build.builder ?? "its builder"} says why`,
    );
}
