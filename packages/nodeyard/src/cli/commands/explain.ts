import type { Command } from "commander";
import { explain, hearing, toExplanation, treeNow } from "../../operations/index.ts";
import { JOURNAL, readJournal } from "../../telemetry/index.ts";
import { parseSubject } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { type Session, stateOf, withTree } from "../session.ts";
import { storyText } from "../story.ts";

export function addExplain(program: Command, session: Session): void {
  program
    .command("explain")
    .description(
      "say what a request, lease or node is doing, or who could serve a label; what it waits for and what happens next",
    )
    .argument(
      "<what...>",
      'an id as the listings or "request" show it, or a label; its kind may stand before it: label 7',
    )
    .option("--json", "an object on stdout")
    .addHelpText(
      "after",
      "\nEvery live launcher is asked, wherever it runs, for three seconds at most; who does not answer is named." +
        "\nWhat a launcher noted that is gone is in its state folder: --state DIR reads that too.",
    )
    .action((words: readonly string[], { json }: { readonly json?: boolean }) => {
      const subject = parseSubject(words);
      return withTree(session, async (handles) => {
        const journal = `${stateOf(session)}/${JOURNAL}`;
        const hear = hearing(handles, (wanted) => readJournal(journal, wanted));
        let silent: readonly string[] = [];
        const story = await explain(handles, subject, async (about) => {
          const heard = await hear(about);
          silent = heard.asked.silent.map(({ member }) => member);
          return heard;
        });
        if (story === undefined)
          throw new CommandError(
            "cli.nothing_known",
            subject.kind === "label"
              ? `no pool offers a label ${JSON.stringify(subject.id)}, and no node or request has it${unanswered(silent)}; see "nodeyard info PROVIDER"`
              : `there is no ${subject.kind} ${subject.id}, and no launcher that answered nor ${journal} knows it${unanswered(silent)}; see "nodeyard list", "list --leases" and "request-list"`,
          );
        const { io } = session;
        io.out(
          json === true
            ? `${JSON.stringify(toExplanation(story, journal), null, 2)}\n`
            : storyText(story, { journal, now: treeNow(handles), columns: io.columns }),
        );
      });
    });
}

/** Somebody may know it all the same. */
function unanswered(silent: readonly string[]): string {
  return silent.length === 0 ? "" : ` (no answer from ${silent.join(", ")})`;
}
