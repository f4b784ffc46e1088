import { type ImageBuildRecord, paths } from "@nodeyard/model";
import type { Clock } from "@nodeyard/runtime";
import type { Command } from "commander";
import {
  imageWork,
  listBuilds,
  listImages,
  type OperationHandles,
  requestBuild,
} from "../../operations/index.ts";
import { parseImage } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { configuredImage, demandKnown } from "../image-names.ts";
import { progressText } from "../image-progress.ts";
import { type Session, withTree } from "../session.ts";
import { plain } from "../table.ts";

const LOOK_MS = 10_000;

interface BuildOptions {
  readonly wait?: boolean;
  readonly json?: boolean;
}

export function addImageBuild(program: Command, session: Session): void {
  program
    .command("image-build")
    .description("ask for a build of a diskimage; a builder carries it out")
    .argument("<image>", "name of a diskimage", parseImage)
    .option("--wait", "wait until it has ended; exit code 1 if it failed")
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
  if (paused)
    io.err(`nodeyard: ${image} is paused: the request waits for "nodeyard image-unpause ${image}"\n`);
  const build = wait === true ? await ended(session, handles, image, before) : undefined;
  const state = build?.state ?? "requested";
  if (json === true) io.out(`${JSON.stringify({ image, build: build?.id ?? null, state }, null, 2)}\n`);
  else if (build?.state === "ready") io.out(`${image}-${build.id} is ready\n`);
  if (build?.state === "failed")
    throw new CommandError(
      "cli.build_failed",
      `build ${image}-${build.id} failed; its builder's log says why`,
    );
}

/** The first build that is new and has ended. Ctrl-C ends the waiting; the request stands. */
async function ended(
  { machine, io }: Session,
  handles: OperationHandles,
  image: string,
  before: ReadonlySet<string>,
): Promise<ImageBuildRecord> {
  let changed = Promise.withResolvers<void>();
  const feed = handles.tree.feed(paths.imageBuilds(image), {
    interest: (path) => (path.endsWith("/lock") || path.includes("/providers") ? "none" : "data"),
    descend: (path) => path === paths.imageBuilds(image),
    onChange: () => changed.resolve(),
  });
  let told = "";
  try {
    for (;;) {
      const { items } = await listBuilds(handles);
      const fresh = items
        .filter((one) => one.image === image && !before.has(one.record.id))
        .map(({ record }) => record);
      const done = fresh.find(({ state }) => state === "ready" || state === "failed");
      if (done !== undefined) return done;
      const now = fresh.length > 0 ? await howFar(handles, image, fresh[0]!.id, io) : "waiting for a builder";
      if (now !== told && io.isTerminal) io.err(`${now}\n`);
      told = now;
      // A lost event delays, never loses.
      await settledIn(machine.clock, changed.promise);
      changed = Promise.withResolvers();
    }
  } finally {
    await feed.close();
  }
}

/** What the builder says of the build; asked only where somebody sits there. */
async function howFar(
  handles: OperationHandles,
  image: string,
  build: string,
  io: Session["io"],
): Promise<string> {
  const name = `building ${image}-${build}`;
  if (!io.isTerminal) return name;
  const work = (await imageWork(handles, image)).find((one) => one.build === build);
  return work === undefined ? name : `${name}  ${plain(progressText(work))}`;
}

function settledIn(clock: Clock, event: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(LOOK_MS, resolve);
    void event.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
