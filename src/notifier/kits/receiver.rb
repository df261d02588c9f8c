# A receiver of notifications in Ruby, on WEBrick (gem install webrick).
# WEBHOOK_SECRET=whsec_… ruby receiver.rb
# In Rails the raw body is `request.raw_post`; in Rack it is `request.body.read`.

require 'json'
require 'openssl'
require 'webrick'

SECRET = ENV.fetch('WEBHOOK_SECRET')
TOLERANCE_S = 300
MAX_CALLS = 10_000

# In production, use a table that all receiving processes share. Keep a call's row until no replay
# of its notifications can arrive.
CALLS = {}
LOCK = Mutex.new

# Whether the timestamp is recent and one of the signatures matches the raw body. There are two
# signatures while the secret is being rotated.
def signed?(raw_body, header)
  parts = header.split(',').map { |part| part.strip.split('=', 2) }
  t = parts.assoc('t')&.last.to_s
  return false unless t.match?(/\A[0-9]{1,12}\z/) && (Time.now.to_i - t.to_i).abs <= TOLERANCE_S

  expected = OpenSSL::HMAC.hexdigest('SHA256', SECRET, "#{t}.".b + raw_body.b)
  parts.any? { |name, value| name == 'v1' && OpenSSL.secure_compare(expected, value.to_s) }
end

# Ignores repetitions, and keeps late notifications from overwriting newer ones.
def take(notification)
  call_id, event_id, sequence, status = notification.values_at('callId', 'eventId', 'sequence', 'status')
  LOCK.synchronize do
    call = CALLS[call_id] ||= { sequence: 0, seen: {} }
    next 'duplicate' if call[:seen][event_id]

    call[:seen][event_id] = true
    CALLS.shift if CALLS.size > MAX_CALLS
    next 'late' if sequence < call[:sequence]

    call[:sequence] = sequence
    # An event that `notifyEvents` selected is not a status of the call.
    call[:status] = status unless status == 'Event'
    'applied'
  end
end

server = WEBrick::HTTPServer.new(
  BindAddress: '127.0.0.1', Port: ENV.fetch('PORT', '4000').to_i, AccessLog: []
)
server.mount_proc('/') do |request, response|
  raw_body = request.body.to_s
  if signed?(raw_body, request['Gateway-Signature'].to_s)
    # Respond first and do the work afterwards, because the gateway waits at most 10 s.
    response.body = take(JSON.parse(raw_body))
  else
    response.status = 401
  end
end
%w[INT TERM].each { |signal| trap(signal) { server.shutdown } }
server.start
