import { plain } from "@nodeyard/operations/listing";
import { ConfigRefused, openConfig } from "@nodeyard/process";
import { choices } from "@nodeyard/runtime";
import type { Backend } from "./backend/backend.ts";
import { CommandError } from "./errors.ts";
import { filesOf, type Session } from "./session.ts";

/** The configuration that `-c` names; undefined: none, or one that cannot be loaded, which the opening of the tree warns of. */
async function namedConfig(session: Session) {
  if (session.options().config === undefined) return undefined;
  return openConfig(filesOf(session), session.machine).then(
    ({ config }) => config,
    (error: unknown) => {
      if (error instanceof ConfigRefused) return undefined;
      throw error;
    },
  );
}

/**
 * What the configuration says of an image; undefined when none can be read that `-c` names: the default file is not read for it. Throws
 * CommandError when it has no such image.
 */
export async function configuredImage(session: Session, image: string) {
  const config = await namedConfig(session);
  const found = config?.builder.images.get(image);
  if (config === undefined || found !== undefined) return found;
  throw new CommandError(
    "cli.no_diskimage",
    `the configuration builds no diskimage ${image}; ${choices(image, config.builder.images.keys())}`,
  );
}

/** A diskimage that the tree knows. `paused`: by a command; a pause in the configuration is known to builders alone. */
export async function imageIn(
  backend: Backend,
  image: string,
): Promise<{ readonly paused: boolean } | undefined> {
  return (await backend.list("list_images", { image })).rows[0];
}

/** A name that neither a configuration nor the tree has is misspelt, and is refused. Throws CommandError. */
export async function demandKnown(backend: Backend, isKnown: boolean, image: string): Promise<void> {
  if (isKnown) return;
  throw new CommandError(
    "cli.no_diskimage",
    `the tree has no diskimage ${image}; ${await knownImages(backend, image)}; -c FILE names the configuration of a new one`,
  );
}

/** For an error: the diskimage of the tree whose name is most similar, and all of them. */
export async function knownImages(backend: Backend, image: string): Promise<string> {
  const { rows } = await backend.list("list_images");
  return plain(
    choices(
      image,
      rows.map((row) => row.image),
    ),
  );
}

/** A misspelt name must not look like a provider without nodes. Throws CommandError. */
export async function demandProvider(session: Session, backend: Backend, provider: string): Promise<void> {
  const known = new Set((await backend.list("list_providers")).rows.map((row) => row.provider));
  for (const { name } of (await namedConfig(session))?.providers ?? []) known.add(name);
  if (known.has(provider)) return;
  throw new CommandError(
    "cli.no_provider",
    `no launcher serves a provider ${JSON.stringify(provider)}, and no node or upload has it; ${choices(provider, known)}`,
  );
}
