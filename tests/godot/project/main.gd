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
	for argument in OS.get_cmdline_args():
		if argument.begins_with("--") and "=" in argument:
			var parts = argument.substr(2).split("=", true, 1)
			options[parts[0]] = parts[1]
	role = options.get("role", "")
	folder = options.get("folder", "")
	$Mover.rset_config("position", MultiplayerAPI.RPC_MODE_PUPPET)
	get_tree().connect("network_peer_connected", self, "on_peer_connected")
	get_tree().connect("network_peer_disconnected", self, "on_peer_disconnected")
	get_tree().connect("connected_to_server", self, "on_connected")
	get_tree().connect("connection_failed", self, "on_failed")
	get_tree().connect("server_disconnected", self, "on_server_disconnected")
	get_tree().multiplayer.connect("network_peer_packet", self, "on_raw")
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
	if peer.create_server({"address": options["address"], "private_key": PoolByteArray([1, 2, 3])}) != ERR_INVALID_PARAMETER:
		return fail("a key of three bytes was accepted")
	if peer.create_server() != null:
		return fail("create_server without arguments returned something")
	var result = peer.create_server({"address": options["address"], "private_key": key, "protocol_id": PROTOCOL,
			"max_clients": 8, "log_level": 2})
	if result != OK:
		return fail("create_server: %d" % result)
	if peer.create_server({"address": options["address"], "private_key": key}) != ERR_ALREADY_IN_USE:
		return fail("a server was created twice")
	get_tree().network_peer = peer
	mint("a", key, 1001, 300)
	mint("b", key, 1002, 300)
	mint("b_again", key, 1002, 300)
	mint("c", key, 1003, 300)
	mint("later", key, 1004, 300)
	mint("wrong", peer.make_key(), 1005, 300)
	mint("expired", key, 1006, 0)
	for i in HOSTILE_TOKENS:
		mint("hostile%d" % i, key, 2000 + i, 300)
	say("server ready id=%d server=%s status=%d port=%d" % [peer.get_unique_id(), get_tree().is_network_server(),
			peer.get_connection_status(), peer.get_port()])


func mint(name, key, client_id, expire):
	var addresses = [options["relay"] if name in ["a", "b"] else options["address"]]
	var token = peer.make_token({"addresses": addresses, "internal_addresses": [options["address"]], "client_id": client_id,
			"private_key": key, "protocol_id": PROTOCOL, "expire_seconds": expire, "timeout_seconds": 3 if name == "wrong" else 30,
			"user_data": ("player " + name).to_utf8()})
	if token.size() != 2048:
		return fail("make_token")
	var file = File.new()
	file.open(folder + "/" + name + ".token", File.WRITE)
	file.store_buffer(token)
	file.close()


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


# Raw packets: those of the mode that RPCs do not have are counted, all others come back.
func on_raw(id, bytes):
	if role == "server":
		var text = bytes.get_string_from_ascii()
		if text.begins_with("ordered ") and id in received:
			received[id]["ordered"].append(int(text.substr(8)))
			return
		raw_echoes += 1
		get_tree().multiplayer.send_bytes(bytes, id, NetworkedMultiplayerPeer.TRANSFER_MODE_RELIABLE)
	elif bytes.get_string_from_ascii() != "":
		say("%s raw from=%d text=%s" % [role, id, bytes.get_string_from_ascii()])


remote func ping(mode, number):
	var id = get_tree().get_rpc_sender_id()
	if id in received and mode in received[id]:
		received[id][mode].append(number)


func increasing(numbers):
	for i in range(1, numbers.size()):
		if numbers[i] <= numbers[i - 1]:
			return false
	return true


remote func done_sending():
	var id = get_tree().get_rpc_sender_id()
	var result = {}
	for mode in received[id]:
		result[mode] = {"count": received[id][mode].size(), "increasing": increasing(received[id][mode])}
	rpc_id(id, "result", result)


# The server moves a node: a position each frame, unreliable, and the last one reliable.
remote func start_moving():
	moving = true


func move():
	moves += 1
	$Mover.position += Vector2(3, 1 + moves % 5)
	if moves < 90:
		$Mover.rset_unreliable("position", $Mover.position)
	else:
		moving = false
		$Mover.rset("position", $Mover.position)
		rpc("moved_last")
		say("server mover at %s" % $Mover.position)


puppet func moved_last():
	say("%s mover at %s" % [role, $Mover.position])


remote func all_but(id):
	rpc_id(-id, "not_for", id)


remote func not_for(id):
	say("%s not_for own=%s" % [role, id == get_tree().get_network_unique_id()])


remote func kick(id, why):
	var client_id = peer.get_client_id(id)
	say("server statistics %s" % (peer.statistics(id)["round_trip_seconds"] > 0.01))
	if peer.kick(id, why) != OK or peer.disconnect_peer(id, why) != ERR_INVALID_PARAMETER:
		fail("disconnect_peer")
	peer.ban(client_id)


remote func refuse(yes):
	peer.refuse_new_connections = yes
	say("server refuses=%s" % peer.refuse_new_connections)
	rpc_id(get_tree().get_rpc_sender_id(), "refusing", yes)


remote func finish():
	say("server statistics malformed=%d connects=%d moves=%d" % [peer.statistics()["malformed"], peer.statistics()["connects"], peer.statistics()["moves"]])
	for line in peer.report().split("\n"):
		say("server report " + line)
	peer.close_connection()
	if peer.get_connection_status() != 0:
		fail("close_connection")
	get_tree().network_peer = null
	say("server closed")
	yield(get_tree().create_timer(0.2), "timeout")
	get_tree().quit()


# ---- clients ----

func read_token(name):
	var file = File.new()
	if file.open(folder + "/" + name + ".token", File.READ) != OK:
		return PoolByteArray()
	var token = file.get_buffer(file.get_len())
	file.close()
	return token


func start_client(name):
	peer = NetcodePeer.new()
	var token = options.get("token", name.substr(name.length() - 1))
	var result = peer.create_client(read_token(token))
	if result != OK:
		return fail("create_client: %d" % result)
	get_tree().network_peer = peer
	say("%s connecting status=%d id=%d" % [role, peer.get_connection_status(), peer.get_unique_id()])


func on_failed():
	say("%s failed status=%d why=%s" % [role, peer.get_connection_status(), peer.report()])
	get_tree().network_peer = null
	get_tree().quit()


func on_server_disconnected():
	say("%s server_disconnected why=%s" % [role, peer.report()])
	# The last reference goes while the peer calls this: it must live until it is done.
	get_tree().network_peer = null
	peer = null
	if role == "client_b" and options.get("token", "b") == "b":
		options["token"] = "b_again"  # another token of a player that is banned
		start_client(role)
	else:
		get_tree().quit()


func on_connected():
	say("%s connected id=%d status=%d" % [role, get_tree().get_network_unique_id(), peer.get_connection_status()])
	if role == "client_a":
		run_client_a()
	if role == "refused_later":
		peer.close_connection()
		get_tree().network_peer = null
		get_tree().quit()


func pause(time):
	return get_tree().create_timer(time)


func run_client_a():
	var waited = 0.0
	while others.size() < 1:
		yield(pause(0.05), "timeout")
		waited += 0.05
		if waited > 15.0:
			return fail("client_a knows no other client")
	var other = others[0]
	for i in PINGS:
		rpc_id(1, "ping", "reliable", i)
		rpc_unreliable_id(1, "ping", "unreliable", i)
		send_ordered(i)
		yield(get_tree(), "idle_frame")
	rpc_id(1, "done_sending")
	rpc_id(other, "hello", "only for you")
	rpc("everyone", 7)
	rpc_id(1, "all_but", other)
	rpc_id(1, "start_moving")
	var big = PoolByteArray()
	big.resize(40000)
	rpc_unreliable_id(other, "large", big)
	for mode in 3:
		peer.transfer_mode = mode
		if peer.transfer_mode != mode:
			fail("transfer mode %d became %d" % [mode, peer.transfer_mode])
	peer.set_target_peer(12345)
	if peer.put_packet(PoolByteArray([1])) != ERR_INVALID_PARAMETER:
		fail("an unknown target was accepted")
	peer.set_target_peer(0)
	big.resize(70000)
	if peer.put_packet(big) != ERR_INVALID_PARAMETER:
		fail("a packet that is too large was accepted")
	yield(wait_for("kick"), "completed")
	rpc_id(1, "kick", other, "you were rude")
	yield(wait_for("refuse"), "completed")
	rpc_id(1, "refuse", true)
	yield(wait_for("accept"), "completed")
	rpc_id(1, "refuse", false)
	yield(wait_for("finish"), "completed")
	say("client_a statistics %s" % (peer.statistics()["round_trip_seconds"] > 0.01 and peer.statistics()["bytes_received"] > 10000))
	rpc_id(1, "finish")


# run.py decides when: it makes a file.
func wait_for(name):
	var file = File.new()
	yield(pause(0.05), "timeout")
	while not file.file_exists(folder + "/" + name + ".go"):
		yield(pause(0.05), "timeout")


# RPCs have two modes; a raw packet has the third one.
func send_ordered(number):
	get_tree().multiplayer.send_bytes(("ordered %d" % number).to_ascii(), 1, NetworkedMultiplayerPeer.TRANSFER_MODE_UNRELIABLE_ORDERED)


remote func result(counts):
	for mode in counts:
		say("client_a result %s count=%d increasing=%s" % [mode, counts[mode]["count"], counts[mode]["increasing"]])


remote func hello(text):
	var from = get_tree().get_rpc_sender_id()
	say("%s hello from=%d text=%s" % [role, from, text])
	rpc_id(from, "hello_back", text + ": thank you")


remote func hello_back(text):
	say("%s hello_back from=%d text=%s" % [role, get_tree().get_rpc_sender_id(), text])


remote func everyone(number):
	say("%s everyone from=%d number=%d" % [role, get_tree().get_rpc_sender_id(), number])


remote func large(bytes):
	say("%s large bytes=%d" % [role, bytes.size()])


remote func refusing(_yes):
	say("%s refusing" % role)


# ---- those that may not in ----

# Each attempt is polled here, without the tree. Prints the status that create_client returned, and the reason.
func run_refused():
	var noise = PoolByteArray()
	for i in 2048:
		noise.append(randi() % 256)
	yield(attempt("no token", PoolByteArray()), "completed")
	yield(attempt("noise", noise), "completed")
	yield(attempt("expired", read_token("expired")), "completed")
	yield(attempt("another key", read_token("wrong")), "completed")
	var unused = NetcodePeer.new()
	if unused.put_packet(PoolByteArray([1])) != ERR_UNCONFIGURED or unused.report() == "" or unused.statistics().size() != 0:
		fail("a peer that is neither server nor client")
	if unused.disconnect_peer(5) != ERR_UNCONFIGURED or unused.ban("me") != ERR_INVALID_PARAMETER or unused.unban(3) != ERR_INVALID_PARAMETER:
		fail("wrong arguments")
	say("refused done")
	get_tree().quit()


func attempt(title, token):
	var one = NetcodePeer.new()
	var failures = []
	one.connect("connection_failed", self, "on_attempt_failed", [failures])
	var result = one.create_client(token)
	while result == OK and failures.empty():
		one.poll()
		yield(pause(0.02), "timeout")
	say("refused: %s: result=%d failed=%d why=%s" % [title, result, failures.size(), one.report()])
	yield(pause(0.01), "timeout")


func on_attempt_failed(failures):
	failures.append(1)
