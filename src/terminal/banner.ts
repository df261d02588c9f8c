// What a developer needs who has just started a gateway in a terminal: where it is, who may use it, and what to try.

import { isAbsolute, join, relative } from 'node:path';

export type BannerFacts = {
  readonly version: string;
  readonly httpUrl: string;
  readonly dataDir: string;
  /** Where the gateway was started. */
  readonly workingFolder: string;
  /** The embedded database has an app to try it with; any other has those that an operator made. */
  readonly hasDevApp: boolean;
  readonly hasSandbox: boolean;
  readonly console: {
    /** Undefined if the gateway listens where it serves no console. */
    readonly address: string | undefined;
    /** Signs one browser in. Only for a terminal: it must not stand in a log. */
    readonly link?: string;
  };
};

export function bannerLines(facts: BannerFacts): readonly string[] {
  const { version, httpUrl, hasSandbox } = facts;
  const carrier = hasSandbox ? ', with a sandbox in place of a carrier: no real phone rings' : '';
  return [
    '',
    `  Offhook ${version} is up${carrier}`,
    '',
    `  API          ${httpUrl}`,
    `  Docs         ${httpUrl}/docs, where every operation can be tried`,
    ...consoleLines(facts),
    `  Credentials  ${credentials(facts)}`,
    `  Try          ${triedCommand(facts)}`,
    '  End          Ctrl-C',
    '',
  ];
}

function consoleLines(facts: BannerFacts): readonly string[] {
  const { address, link } = facts.console;
  const signIn = command(facts, facts.hasDevApp ? 'console' : 'console --app ID');
  // Nothing stands directly behind an address: a terminal would take it for a part of it.
  if (link !== undefined)
    return [
      `  Console      ${link}`,
      `               signs one browser in, within an hour; after that: ${signIn}`,
    ];
  return [
    address === undefined
      ? '  Console      none: set PUBLIC_URL to the address that browsers use'
      : `  Console      ${address}   (sign in: ${signIn})`,
  ];
}

function credentials(facts: BannerFacts): string {
  return facts.hasDevApp
    ? `${shownFolder(facts, 'dev-app.json')}, of an app that may do everything`
    : `of an app that you make: ${command(facts, 'apps create --name NAME --account ID')}`;
}

function triedCommand(facts: BannerFacts): string {
  if (!facts.hasDevApp) return command(facts, 'nodes');
  const target = facts.hasSandbox ? 'person' : 'tel:NUMBER';
  return `${command(facts, `call ${target} --amd detect --follow`)}   (in a second terminal)`;
}

/** The command finds the gateway by its data folder. */
function command(facts: BannerFacts, words: string): string {
  const { dataDir, workingFolder, hasDevApp } = facts;
  const isFound = dataDir === join(workingFolder, '.offhook') || !hasDevApp;
  return `${isFound ? '' : `DATA_DIR=${shownFolder(facts)} `}npx offhook ${words}`;
}

function shownFolder({ dataDir, workingFolder }: BannerFacts, file = ''): string {
  const near = relative(workingFolder, dataDir);
  const isFar = near === '' || near.startsWith('..') || isAbsolute(near);
  return join(isFar ? dataDir : near, file);
}
