# What run.py starts: --role=server, client_a, client_b or refused. Each prints lines that begin with "test:", which run.py reads.
extends Node

const PROTOCOL = 0x1122334455667788
const PINGS = 200  # of each transfer mode
const HOSTILE_TOKENS = 24

var role = ""
var options = {}
var folder = ""
var peer = null
var received = {}  # server: by peer id and mode, the numbers in the order in which they arrived
var others = []  # clients: peers that were reported, without the server
var seconds = 0.0
var moving = false
var moves = 0
var log_lines = []
var raw_echoes = 0


func say(text):
	print("test: ", text)


func fail(text):
	say("FAILED " + text)
	get_tree().quit(1)


func _ready():
	for argument in (OS.get_cmdline_args() + OS.get_cmdline_user_args()):
		if argument.begins_with("--") and "=" in argument:
			var parts = argument.substr(2).split("=", true, 1)
			options[parts[0]] = parts[1]
	role = options.get("role", "")
	folder = options.get("folder", "")
	multiplayer.peer_connected.connect(on_peer_connected)
	multiplayer.peer_disconnected.connect(on_peer_disconnected)
	multiplayer.connected_to_server.connect(on_connected)
	multiplayer.connection_failed.connect(on_failed)
	multiplayer.server_disconnected.connect(on_server_disconnected)
	multiplayer.peer_packet.connect(on_raw)
	match role:
		"server":
			start_server()
		"client_a", "client_b":
			start_client(role)
		"refused":
			run_refused()
		"refused_later":
			start_client(role)
		_:
			fail("there is no role " + role)


func _process(delta):
	seconds += delta
	if seconds > 180.0:
		fail("%s did not end in 180 s" % role)
	if moving:
		move()


# ---- server ----

func start_server():
	peer = NetcodePeer.new()
	var key = peer.make_key()
	if key.size() != 32 or key == peer.make_key():
		return fail("make_key")
	if peer.create_server({"address": options["address"], "private_key": key, "max_client": 4}) != ERR_INVALID_PARAMETER:
		return fail("an unknown option was accepted")
	if peer.create_server({"address": "nowhere", "private_key": key}) != ERR_INVALID_PARAMETER:
		return fail("an impossible address was accepted")
	if peer.create_server({"address": options["address"], "private_key": PackedByteArray([1, 2, 3])}) != ERR_INVALID_PARAMETER:
		return fail("a key of three bytes was accepted")
	if peer.create_server() != null:
		return fail("create_server without arguments returned something")
	var result = peer.create_server({"address": options["address"], "private_key": key, "protocol_id": PROTOCOL,
			"max_clients": 8, "log_level": 2})
	if result != OK:
		return fail("create_server: %d" % result)
	if peer.create_server({"address": options["address"], "private_key": key}) != ERR_ALREADY_IN_USE:
		return fail("a server was created twice")
	multiplayer.multiplayer_peer = peer
	mint("a", key, 1001, 300)
	mint("b", key, 1002, 300)
	mint("b_again", key, 1002, 300)
	mint("c", key, 1003, 300)
	mint("later", key, 1004, 300)
	mint("wrong", peer.make_key(), 1005, 300)
	mint("expired", key, 1006, 0)
	for i in HOSTILE_TOKENS:
		mint("hostile%d" % i, key, 2000 + i, 300)
	say("server ready id=%d server=%s status=%d port=%d" % [peer.get_unique_id(), multiplayer.is_server(),
			peer.get_connection_status(), peer.get_port()])


func mint(title, key, client_id, expire):
	var addresses = [options["relay"] if title in ["a", "b"] else options["address"]]
	var token = peer.make_token({"addresses": addresses, "internal_addresses": [options["address"]], "client_id": client_id,
			"private_key": key, "protocol_id": PROTOCOL, "expire_seconds": expire, "timeout_seconds": 3 if title == "wrong" else 30,
			"user_data": ("player " + title).to_utf8_buffer()})
	if token.size() != 2048:
		return fail("make_token")
	FileAccess.open(folder + "/" + title + ".token", FileAccess.WRITE).store_buffer(token)


func on_peer_connected(id):
	if role == "server":
		var data = peer.get_user_data(id)
		say("server connected id=%d client_id=%d data=%s address=%s" % [id, peer.get_client_id(id), data.get_string_from_utf8(),
				peer.get_peer_address(id)])
		received[id] = {"reliable": [], "ordered": [], "unreliable": []}
	else:
		if id != 1:
			others.append(id)
		say("%s peer_connected id=%d" % [role, id])


func on_peer_disconnected(id):
	others.erase(id)
	say("%s peer_disconnected id=%d" % [role, id])


# Raw packets of C clients come back.
func on_raw(id, bytes):
	if role == "server":
		raw_echoes += 1
		multiplayer.send_bytes(bytes, id, MultiplayerPeer.TRANSFER_MODE_RELIABLE)
	elif bytes.get_string_from_ascii() != "":
		say("%s raw from=%d text=%s" % [role, id, bytes.get_string_from_ascii()])


@rpc("any_peer", "reliable")
func ping_reliable(number):
	note("reliable", number)


@rpc("any_peer", "unreliable_ordered")
func ping_ordered(number):
	note("ordered", number)


@rpc("any_peer", "unreliable")
func ping_unreliable(number):
	note("unreliable", number)


func note(mode, number):
	var id = multiplayer.get_remote_sender_id()
	if id in received:
		received[id][mode].append(number)


func increasing(numbers):
	for i in range(1, numbers.size()):
		if numbers[i] <= numbers[i - 1]:
			return false
	return true


@rpc("any_peer", "reliable")
func done_sending():
	var id = multiplayer.get_remote_sender_id()
	var result = {}
	for mode in received[id]:
		result[mode] = {"count": received[id][mode].size(), "increasing": increasing(received[id][mode])}
	rpc_id(id, "result", result)


# The server moves a node: a position each frame, unreliable, and the last one reliable.
@rpc("any_peer", "reliable")
func start_moving():
	moving = true


func move():
	moves += 1
	$Mover.position += Vector2(3, 1 + moves % 5)
	if moves < 90:
		rpc("moved", $Mover.position)
	else:
		moving = false
		rpc("moved_last", $Mover.position)
		say("server mover at %s" % str($Mover.position))


@rpc("authority", "unreliable_ordered")
func moved(position):
	$Mover.position = position


@rpc("authority", "reliable")
func moved_last(position):
	$Mover.position = position
	say("%s mover at %s" % [role, str($Mover.position)])


@rpc("any_peer", "reliable")
func all_but(id):
	rpc_id(-id, "not_for", id)


@rpc("any_peer", "reliable")
func not_for(id):
	say("%s not_for own=%s" % [role, id == multiplayer.get_unique_id()])


@rpc("any_peer", "reliable")
func kick(id, why):
	var client_id = peer.get_client_id(id)
	say("server statistics %s" % (peer.statistics(id)["round_trip_seconds"] > 0.01))
	if peer.kick(id, why) != OK or peer.kick(id, why) != ERR_INVALID_PARAMETER:
		fail("disconnect_peer")
	peer.ban(client_id)


@rpc("any_peer", "reliable")
func refuse(yes):
	peer.refuse_new_connections = yes
	say("server refuses=%s" % peer.refuse_new_connections)
	rpc_id(multiplayer.get_remote_sender_id(), "refusing", yes)


@rpc("any_peer", "reliable")
func finish():
	say("server statistics malformed=%d connects=%d moves=%d" % [peer.statistics()["malformed"], peer.statistics()["connects"], peer.statistics()["moves"]])
	for line in peer.report().split("\n"):
		say("server report " + line)
	peer.close()
	if peer.get_connection_status() != 0:
		fail("close_connection")
	multiplayer.multiplayer_peer = null
	say("server closed")
	await get_tree().create_timer(0.2).timeout
	get_tree().quit()


# ---- clients ----

func read_token(title):
	return FileAccess.get_file_as_bytes(folder + "/" + title + ".token")


func start_client(title):
	peer = NetcodePeer.new()
	var token = options.get("token", title.substr(title.length() - 1))
	var result = peer.create_client(read_token(token))
	if result != OK:
		return fail("create_client: %d" % result)
	multiplayer.multiplayer_peer = peer
	say("%s connecting status=%d id=%d" % [role, peer.get_connection_status(), peer.get_unique_id()])


func on_failed():
	say("%s failed status=%d why=%s" % [role, peer.get_connection_status(), peer.report()])
	multiplayer.multiplayer_peer = null
	get_tree().quit()


func on_server_disconnected():
	say("%s server_disconnected why=%s" % [role, peer.report()])
	# The last reference goes while the peer calls this: it must live until it is done.
	multiplayer.multiplayer_peer = null
	peer = null
	if role == "client_b" and options.get("token", "b") == "b":
		options["token"] = "b_again"  # another token of a player that is banned
		start_client(role)
	else:
		get_tree().quit()


func on_connected():
	say("%s connected id=%d status=%d" % [role, multiplayer.get_unique_id(), peer.get_connection_status()])
	if role == "client_a":
		run_client_a()
	if role == "refused_later":
		peer.close()
		multiplayer.multiplayer_peer = null
		get_tree().quit()


func pause(time):
	return get_tree().create_timer(time)


func run_client_a():
	var waited = 0.0
	while others.size() < 1:
		await pause(0.05).timeout
		waited += 0.05
		if waited > 15.0:
			return fail("client_a knows no other client")
	var other = others[0]
	for i in PINGS:
		rpc_id(1, "ping_reliable", i)
		rpc_id(1, "ping_unreliable", i)
		rpc_id(1, "ping_ordered", i)
		await get_tree().process_frame
	rpc_id(1, "done_sending")
	rpc_id(other, "hello", "only for you")
	rpc("everyone", 7)
	rpc_id(1, "all_but", other)
	rpc_id(1, "start_moving")
	var big = PackedByteArray()
	big.resize(40000)
	rpc_id(other, "large", big)
	peer.set_target_peer(12345)
	if peer.put_packet(PackedByteArray([1])) != ERR_INVALID_PARAMETER:
		fail("an unknown target was accepted")
	peer.set_target_peer(0)
	big.resize(70000)
	if peer.put_packet(big) != ERR_INVALID_PARAMETER:
		fail("a packet that is too large was accepted")
	await wait_for("kick")
	rpc_id(1, "kick", other, "you were rude")
	await wait_for("refuse")
	rpc_id(1, "refuse", true)
	await wait_for("accept")
	rpc_id(1, "refuse", false)
	await wait_for("finish")
	say("client_a statistics %s" % (peer.statistics()["round_trip_seconds"] > 0.01 and peer.statistics()["bytes_received"] > 10000))
	rpc_id(1, "finish")


# run.py decides when: it makes a file.
func wait_for(title):
	while not FileAccess.file_exists(folder + "/" + title + ".go"):
		await pause(0.05).timeout


@rpc("any_peer", "reliable")
func result(counts):
	for mode in counts:
		say("client_a result %s count=%d increasing=%s" % [mode, counts[mode]["count"], counts[mode]["increasing"]])


@rpc("any_peer", "reliable")
func hello(text):
	var from = multiplayer.get_remote_sender_id()
	say("%s hello from=%d text=%s" % [role, from, text])
	rpc_id(from, "hello_back", text + ": thank you")


@rpc("any_peer", "reliable")
func hello_back(text):
	say("%s hello_back from=%d text=%s" % [role, multiplayer.get_remote_sender_id(), text])


@rpc("any_peer", "reliable")
func everyone(number):
	say("%s everyone from=%d number=%d" % [role, multiplayer.get_remote_sender_id(), number])


@rpc("any_peer", "unreliable")
func large(bytes):
	say("%s large bytes=%d" % [role, bytes.size()])


@rpc("any_peer", "reliable")
func refusing(_yes):
	say("%s refusing" % role)


# ---- those that may not in ----

# Each attempt is polled here, without the tree. Prints the status that create_client returned, and the reason.
func run_refused():
	var noise = PackedByteArray()
	for i in 2048:
		noise.append(randi() % 256)
	await attempt("no token", PackedByteArray())
	await attempt("noise", noise)
	await attempt("expired", read_token("expired"))
	await attempt("another key", read_token("wrong"))
	var unused = NetcodePeer.new()
	if unused.put_packet(PackedByteArray([1])) != ERR_UNCONFIGURED or unused.report() == "" or unused.statistics().size() != 0:
		fail("a peer that is neither server nor client")
	if unused.kick(5) != ERR_UNCONFIGURED or unused.ban("me") != ERR_INVALID_PARAMETER or unused.unban(3) != ERR_INVALID_PARAMETER:
		fail("wrong arguments")
	say("refused done")
	get_tree().quit()


func attempt(title, token):
	var one = NetcodePeer.new()
	var result = one.create_client(token)
	while result == OK and one.get_connection_status() != MultiplayerPeer.CONNECTION_DISCONNECTED:
		one.poll()
		await pause(0.02).timeout
	say("refused: %s: result=%d failed=%d why=%s" % [title, result, 1 if result == OK else 0, one.report()])
