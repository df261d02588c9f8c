// The banner for developers who have just started a gateway in a terminal. It shows the gateway's
// addresses, the credentials, and a command to try.

import { isAbsolute, join, relative } from 'node:path';

export type BannerFacts = {
  readonly version: string;
  readonly httpUrl: string;
  readonly dataDir: string;
  /** The folder in which the gateway was started. */
  readonly workingFolder: string;
  /** True with the embedded database. Otherwise an operator creates the apps. */
  readonly hasDevApp: boolean;
  readonly hasSandbox: boolean;
  readonly console: {
    /** Undefined if the gateway doesn't serve a console at its address. */
    readonly address: string | undefined;
    /**
     * A link that signs in a single browser. We only show it in a terminal, because it must not be
     * logged.
     */
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
    `  Docs         ${httpUrl}/docs, where you can try every operation`,
    ...consoleLines(facts),
    `  Credentials  ${credentials(facts)}`,
    `  Try          ${commandToTry(facts)}`,
    '  End          Ctrl-C',
    '',
  ];
}

function consoleLines(facts: BannerFacts): readonly string[] {
  const { address, link } = facts.console;
  const signIn = command(facts, facts.hasDevApp ? 'console' : 'console --app ID');
  // Don't put text directly after an address, because terminals would include the text in the link.
  if (link !== undefined)
    return [
      `  Console      ${link}`,
      `               signs in one browser within an hour; later, run: ${signIn}`,
    ];
  return [
    address === undefined
      ? '  Console      none: set PUBLIC_URL to the address that browsers use'
      : `  Console      ${address}   (sign in: ${signIn})`,
  ];
}

function credentials(facts: BannerFacts): string {
  return facts.hasDevApp
    ? `${shownFolder(facts, 'dev-app.json')}, for an app that may do everything`
    : `create an app with: ${command(facts, 'apps create --name NAME --account ID')}`;
}

function commandToTry(facts: BannerFacts): string {
  if (!facts.hasDevApp) return command(facts, 'nodes');
  const target = facts.hasSandbox ? 'person' : 'tel:NUMBER';
  return `${command(facts, `call ${target} --amd detect --follow`)}   (in a second terminal)`;
}

/** Returns an `offhook` command line, with DATA_DIR if the command needs it to find the gateway. */
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
