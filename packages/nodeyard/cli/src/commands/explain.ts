import type { Explained } from "@nodeyard/operations";
import type { Command } from "commander";
import { parseSubject } from "../arguments.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError } from "../errors.ts";
import { unknownLabels } from "../leasing.ts";
import { printJson } from "../listing.ts";
import { knownImages } from "../names.ts";
import type { Session } from "../session.ts";
import { storyText } from "../story.ts";

/** `nodeyard explain`: changes nothing but the znode of its question, which it removes. */
export function defineExplain(command: Command, session: Session): void {
  command
    .argument(
      "<what...>",
      'an id as "list" and "request" print it, a label, or the id of a job of a CI; its kind may come first (label 7, job 7), and must for a diskimage (image debian)',
    )
    .option("--json", "an object on stdout")
    .addHelpText(
      "after",
      "\nAsks every live launcher and builder, wherever it runs, for up to three seconds, and names those that do not answer." +
        "\nThe journal of a launcher that no longer runs is in its state folder: --state DIR reads it, too.",
    )
    .action((words: readonly string[], { json }: { readonly json?: boolean }) => {
      // Before the tree is opened: a wrong word is a usage error, also where no tree answers.
      const subject = parseSubject(words);
      return withBackend(session, async (backend) => {
        const { explanation, silent, journal } = await explained(backend, subject, words);
        if (explanation === undefined)
          throw await nothingKnown(backend, subject, journal, unanswered(silent));
        const { io } = session;
        const now = backend.now();
        if (json === true) printJson(io, explanation);
        else io.out(storyText(explanation, { journal, now, columns: io.columns }));
      });
    });
}

/** A CI may name its jobs in any way, so only a single word that means nothing else is taken for one. */
async function explained(backend: Backend, subject: Explained, words: readonly string[]) {
  const [word = "", ...others] = words;
  const asJob = () => backend.explain({ kind: "job", id: word });
  const asked = await backend.explain(subject).catch((error: { readonly status?: number }) => {
    // A server refuses what it does not know, in words of its own.
    if (others.length > 0 || error.status !== 404) throw error;
    return asJob().catch(() => {
      throw error;
    });
  });
  if (asked.explanation !== undefined || others.length > 0) return asked;
  const job = await asJob();
  return job.explanation === undefined ? asked : job;
}

/** For a name that nobody knows: it says who was asked, since a launcher that did not answer may know it. */
async function nothingKnown(
  backend: Backend,
  { kind, id }: Explained,
  journal: string,
  silent: string,
): Promise<CommandError> {
  switch (kind) {
    case "label":
      return new CommandError(
        "cli.nothing_known",
        `${await unknownLabels(backend, [id])}; no node or request has it${silent}; nor has a lease a job of this name; for a diskimage: nodeyard explain image ${id}`,
      );
    case "image":
      return new CommandError(
        "cli.nothing_known",
        `the tree has no diskimage ${JSON.stringify(id)}, and no builder that answered has it configured${silent}; ${await knownImages(backend, id)}`,
      );
    default:
      return new CommandError(
        "cli.nothing_known",
        `there is no ${kind} ${id}, and neither the launchers that answered nor ${journal} know it${silent}; see "nodeyard list", "list --leases" and "request-list"`,
      );
  }
}

/** The members that did not answer: one of them may know the subject. */
function unanswered(silent: readonly string[]): string {
  return silent.length === 0 ? "" : ` (no answer from ${silent.join(", ")})`;
}
