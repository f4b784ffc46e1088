import type { Command } from "commander";
import { type Explained, explain, queryMembers, toExplanation, treeNow } from "../../operations/index.ts";
import { JOURNAL, readJournal } from "../../telemetry/index.ts";
import { parseSubject } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { type Session, stateOf, withTree } from "../session.ts";
import { storyText } from "../story.ts";

export function defineExplain(command: Command, session: Session): void {
  command
    .argument(
      "<what...>",
      'an id as "list" and "request" print it, or a label; its kind may come first (label 7), and must for a diskimage (image debian)',
    )
    .option("--json", "an object on stdout")
    .addHelpText(
      "after",
      "\nAsks every live launcher and builder, wherever it runs, for up to three seconds, and names those that do not answer." +
        "\nThe journal of a launcher that no longer runs is in its state folder: --state DIR reads it, too.",
    )
    .action((words: readonly string[], { json }: { readonly json?: boolean }) => {
      const subject = parseSubject(words);
      return withTree(session, async (handles) => {
        const journal = `${stateOf(session)}/${JOURNAL}`;
        const query = queryMembers(handles, (wanted) => readJournal(journal, wanted));
        let silent: readonly string[] = [];
        const story = await explain(handles, subject, async (about) => {
          const replies = await query(about);
          silent = replies.asked.silent.map(({ member }) => member);
          return replies;
        });
        if (story === undefined) throw nothingKnown(subject, journal, unanswered(silent));
        const { io } = session;
        io.out(
          json === true
            ? `${JSON.stringify(toExplanation(story, journal), null, 2)}\n`
            : storyText(story, { journal, now: treeNow(handles), columns: io.columns }),
        );
      });
    });
}

function nothingKnown({ kind, id }: Explained, journal: string, silent: string): CommandError {
  switch (kind) {
    case "label":
      return new CommandError(
        "cli.nothing_known",
        `no pool offers a label ${JSON.stringify(id)}, and no node or request has it${silent}; see "nodeyard info PROVIDER", or for a diskimage "nodeyard explain image ${id}"`,
      );
    case "image":
      return new CommandError(
        "cli.nothing_known",
        `the tree has no diskimage ${JSON.stringify(id)}, and no builder that answered has it configured${silent}; see "nodeyard image-status"`,
      );
    default:
      return new CommandError(
        "cli.nothing_known",
        `there is no ${kind} ${id}, and neither the launchers that answered nor ${journal} know it${silent}; see "nodeyard list", "list --leases" and "request-list"`,
      );
  }
}

/** Somebody may know it all the same. */
function unanswered(silent: readonly string[]): string {
  return silent.length === 0 ? "" : ` (no answer from ${silent.join(", ")})`;
}
