import { expect, test } from 'vitest';
import { trunksPath } from '../../src/sip/trunks/trunks-path.ts';

test('returns the file that TRUNKS_FILE names, even if it does not exist', () => {
  expect(trunksPath({ trunksFile: '/etc/trunks.yaml' })).toBe('/etc/trunks.yaml');
});

test('returns no file for `none`, even if the default file exists', () => {
  expect(trunksPath({ trunksFile: 'none' })).toBeUndefined();
});
