import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { logOut, mayOperate, resumeSession, seesEverything, session } from "../data/api.ts";
import { whoText } from "../data/format.ts";
import { address, go, hrefOf } from "../data/route.ts";
import { hasSlivers } from "../data/state.ts";
import { type Connection, connection, follow, unfollow } from "../data/stream.ts";
import { nextTheme, theme } from "../data/theme.ts";
import { AuditView } from "../views/audit.tsx";
import { ImagesView } from "../views/images.tsx";
import { LabelView } from "../views/label.tsx";
import { LeasesView } from "../views/leases.tsx";
import { NodesView } from "../views/nodes.tsx";
import { Overview } from "../views/overview.tsx";
import { PlanView } from "../views/plan.tsx";
import { ProvidersView } from "../views/providers.tsx";
import { RequestsView } from "../views/requests.tsx";
import { SliversView } from "../views/slivers.tsx";
import { WhyView } from "../views/why.tsx";
import { Login } from "./login.tsx";
import { Problem } from "./pieces.tsx";
import { isTyping } from "./use.ts";

interface View {
  readonly title: string;
  readonly show: ComponentType<{ readonly id: string | undefined }>;
  /** Whether the navigation contains the view. */
  readonly named?: false;
  /** Whether the session's navigation contains it; absent: that of every session. */
  readonly whose?: () => boolean;
}

const VIEWS: Readonly<Record<string, View>> = {
  "": { title: "Overview", show: Overview },
  requests: { title: "Requests", show: RequestsView },
  nodes: { title: "Nodes", show: NodesView },
  leases: { title: "Leases", show: LeasesView },
  images: { title: "Images", show: ImagesView, whose: seesEverything },
  providers: { title: "Providers", show: ProvidersView, whose: seesEverything },
  slivers: { title: "Slivers", show: SliversView, whose: () => seesEverything() && hasSlivers() },
  plan: { title: "Plan", show: PlanView, whose: mayOperate },
  audit: { title: "Audit", show: AuditView, whose: mayOperate },
  labels: { title: "Label", show: LabelView, named: false },
  why: { title: "Why is this slow?", show: WhyView, named: false },
};

export function App() {
  const [error, setError] = useState<unknown>();
  const loggedIn = session.value?.name;
  useEffect(() => {
    resumeSession().catch(setError);
  }, []);
  useEffect(() => {
    if (loggedIn === undefined) return;
    setError(undefined);
    follow();
    return unfollow;
  }, [loggedIn]);
  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  if (session.value === undefined && error === undefined) return <p class="starting">Nodeyard</p>;
  if (session.value == null) return <Login problem={error} />;
  return <Page />;
}

/** Keys: "/" searches, Escape leads from a detail to its list. */
function onKey(event: KeyboardEvent): void {
  if (event.key === "Escape" && document.activeElement?.id === "search")
    document.getElementById("search")!.blur();
  if (isTyping(event)) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search")?.focus();
  } else if (event.key === "Escape" && address.peek().id !== undefined) {
    const { view } = address.peek();
    go(hrefOf(view === "labels" ? "" : view));
  }
}

function Page() {
  const { view, id } = address.value;
  const { title, show: Show } = VIEWS[view] ?? { title: "Nothing here", show: Nothing };
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${id === undefined ? title : `${id} · ${title}`} · Nodeyard`;
    // The focus moves to the new view, so that screen readers and keyboards continue there.
    scrollTo(0, 0);
    if (!first.current && document.activeElement?.id !== "search") main.current?.focus();
    first.current = false;
  }, [view, id]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Top view={view} />
      <main id="main" ref={main} tabIndex={-1} key={`${view}/${id}`} aria-label={title}>
        <Show id={id} />
      </main>
    </>
  );
}

function Nothing() {
  return (
    <>
      <h1>Nothing here</h1>
      <p>
        There is no such view. <a href="#/">Go to the overview.</a>
      </p>
    </>
  );
}

function Top({ view }: { readonly view: string }) {
  const named = Object.entries(VIEWS).filter(([, one]) => one.named !== false && one.whose?.() !== false);
  return (
    <header class="top">
      <a class="brand" href="#/" aria-label="Nodeyard, overview">
        Nodeyard
      </a>
      <nav aria-label="Views">
        {named.map(([name, { title }]) => (
          <a key={name} href={hrefOf(name)} {...(name === view && { "aria-current": "page" })}>
            {title}
          </a>
        ))}
      </nav>
      <Search />
      <Live />
      <Who />
    </header>
  );
}

function Search() {
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get("q") ?? "").trim();
    if (text !== "") go(hrefOf("why", undefined, { q: text }));
  };
  return (
    <search>
      <form onSubmit={search}>
        <input
          id="search"
          name="q"
          type="search"
          aria-label="Why is this slow? An id, address or name, or a part of one"
          placeholder="Why is this slow?  id, address, name"
          autocomplete="off"
          spellcheck={false}
        />
      </form>
    </search>
  );
}

const SAYS: Readonly<Record<Connection, readonly [sign: string, text: string]>> = {
  connecting: ["○", "connecting"],
  loading: ["◐", "loading"],
  live: ["●", "live"],
  partial: ["◐", "launcher has lost the tree"],
  lost: ["✕", "not connected: what you see is old"],
};

function Live() {
  const [sign, text] = SAYS[connection.value];
  return (
    <p class={`live ${connection.value}`} role="status" aria-live="polite">
      <span aria-hidden="true">{sign}</span> {text}
    </p>
  );
}

function Who() {
  const [error, setError] = useState<unknown>();
  return (
    <div class="who">
      <button type="button" class="small" onClick={nextTheme} aria-label={`Colours: ${theme.value}`}>
        {theme.value === "auto" ? "◑ auto" : theme.value === "light" ? "○ light" : "● dark"}
      </button>
      <span class="dim name" title={`role ${session.value?.role}`}>
        {whoText(session.value?.name ?? "")}
      </span>
      <button type="button" class="small" onClick={() => logOut().catch(setError)}>
        Log out
      </button>
      <Problem error={error} />
    </div>
  );
}
