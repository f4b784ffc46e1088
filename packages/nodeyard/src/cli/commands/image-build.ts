import type { Command } from "commander";
import { listImages, type OperationHandles, requestBuild } from "../../operations/index.ts";
import { parseImage } from "../arguments.ts";
import { awaitBuild } from "../await-build.ts";
import { CommandError } from "../errors.ts";
import { configuredImage, demandKnown } from "../image-names.ts";
import { type Session, withTree } from "../session.ts";

interface BuildOptions {
  readonly wait?: boolean;
  readonly json?: boolean;
}

export function defineImageBuild(command: Command, session: Session): void {
  command
    .argument("<image>", "name of a diskimage", parseImage)
    .option("--wait", "wait until the build ends; exit code 1 if it failed")
    .option("--json", "an object on stdout: image, build and state")
    .action(async (image: string, options: BuildOptions) => {
      const configured = await configuredImage(session, image);
      if (configured?.paused)
        throw new CommandError(
          "cli.diskimage_paused",
          `diskimage ${image} is paused by its configuration; remove "pause: true" there`,
        );
      await withTree(session, (handles) => ask(session, handles, image, options));
    });
}

async function ask(
  session: Session,
  handles: OperationHandles,
  image: string,
  { wait, json }: BuildOptions,
): Promise<void> {
  const { io } = session;
  await demandKnown(session, handles, image);
  const before = await requestBuild(handles, image);
  const paused = (await listImages(handles)).items.some((one) => one.image === image && one.paused);
  if (paused && wait !== true)
    io.err(`nodeyard: ${image} is paused: the request waits for "nodeyard image-unpause ${image}"\n`);
  const build = wait === true ? await awaitBuild(session, handles, image, before) : undefined;
  const state = build?.state ?? "requested";
  if (json === true) io.out(`${JSON.stringify({ image, build: build?.id ?? null, state }, null, 2)}\n`);
  else if (build?.state === "ready") io.out(`${image}-${build.id} is ready\n`);
  if (build?.state === "failed")
    throw new CommandError(
      "cli.build_failed",
      `build ${image}-${build.id} failed; ${image}-${build.id}.log in build-log-dir of ${build.builder ?? "its builder"} says why`,
    );
}
