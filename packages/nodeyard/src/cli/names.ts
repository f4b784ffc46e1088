import { openConfig } from "../process/index.ts";
import { CommandError } from "./errors.ts";
import { filesOf, type Session } from "./session.ts";

/**
 * What the configuration says of an image; undefined when none is named with `-c`: the default file is not read for it. Throws
 * CommandError when it has no such image.
 */
export async function configuredImage(session: Session, image: string) {
  if (session.options().config === undefined) return undefined;
  const { config } = await openConfig(filesOf(session), session.machine);
  const found = config.builder.images.get(image);
  if (found !== undefined) return found;
  throw new CommandError(
    "cli.no_diskimage",
    `the configuration builds no diskimage ${image}; it builds: ${[...config.builder.images.keys()].join(", ")}`,
  );
}

/** Without a configuration the tree must have the image, so that a misspelt name is not accepted. Throws CommandError. */
export function demandKnown(session: Session, known: boolean, image: string): void {
  if (known || session.options().config !== undefined) return;
  throw new CommandError(
    "cli.no_diskimage",
    `the tree has no diskimage ${image}; "nodeyard image-status" lists them, and -c FILE names the configuration of a new one`,
  );
}

/** A misspelt name must not look like a provider without nodes. Throws CommandError. */
export async function demandProvider(
  session: Session,
  providers: () => Promise<readonly string[]>,
  provider: string,
): Promise<void> {
  const known = new Set(await providers());
  if (session.options().config !== undefined) {
    const { config } = await openConfig(filesOf(session), session.machine);
    for (const { name } of config.providers) known.add(name);
  }
  if (known.has(provider)) return;
  throw new CommandError(
    "cli.no_provider",
    `no launcher serves a provider ${JSON.stringify(provider)}, and no node or upload has it; known: ${[...known].join(", ") || "none"}`,
  );
}
