import { signal } from "@preact/signals";

const KEY = "nodeyard-theme";
const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** `auto`: the theme of the operating system. */
export const theme = signal<Theme>("auto");

export function startTheme(): void {
  set(themes.find((one) => one === read()) ?? "auto");
}

export function nextTheme(): void {
  set(themes[(themes.indexOf(theme.peek()) + 1) % themes.length]!);
}

function set(wanted: Theme): void {
  theme.value = wanted;
  document.documentElement.dataset.theme = wanted;
  try {
    localStorage.setItem(KEY, wanted);
  } catch {
    // Without storage the choice lasts as long as the tab.
  }
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
