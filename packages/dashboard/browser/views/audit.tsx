import type { RowOf } from "@nodeyard/client";
import { call } from "../data/api.ts";
import { Age, Problem, Section } from "../ui/pieces.tsx";
import { useLoad } from "../ui/use.ts";

interface Audit {
  readonly items: readonly RowOf<"list_audit">[];
}

const SHOWN = 200;

/** Changes and refused attempts, newest first. */
export function AuditView() {
  const { data, error, loading, reload } = useLoad("audit", () =>
    call<Audit>("GET", `/v1/audit?sort=-id&limit=${SHOWN}`),
  );
  return (
    <>
      <header>
        <h1>Audit</h1>
        <button type="button" onClick={reload} disabled={loading}>
          Look again
        </button>
      </header>
      <Problem error={error} />
      <Section title={`The latest calls of this process that change something, at most ${SHOWN}`}>
        {data?.items.length === 0 && <p class="dim">None yet.</p>}
        <ul class="lines">
          {data?.items.map(({ id, at, who, role, action, subject, why, status }) => (
            <li key={id}>
              <span class={status < 400 ? "state good" : "state bad"}>
                <span aria-hidden="true">{status < 400 ? "●" : "✕"}</span>{" "}
                {status < 400 ? "done" : `refused (${status})`}
              </span>
              <span class="grow">
                {action.replaceAll("_", " ")} {subject}
                {why !== null && `: ${why}`}
              </span>
              <span class="dim">
                {who}, {role}
              </span>
              <Age at={at} />
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}
