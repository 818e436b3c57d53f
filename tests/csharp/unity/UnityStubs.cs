// The few types of Unity that the samples use, as far as they use them: so that they are compiled, and run, where there is no Unity. Written
// from Unity's scripting reference.

using System;
using System.Collections.Generic;
using System.Reflection;

namespace UnityEngine
{
    public class Object
    {
        public static GameObject Instantiate(GameObject original) { return new GameObject(original.name + "(Clone)"); }
    }

    public class Component : Object { }

    public class Behaviour : Component { }

    // Unity calls these by name, whatever their access is.
    public class MonoBehaviour : Behaviour
    {
        public void Send(string message)
        {
            MethodInfo method = GetType().GetMethod(message, BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public, null, Type.EmptyTypes, null);
            if (method == null)
                throw new MissingMethodException(GetType().Name, message);
            ((Action)Delegate.CreateDelegate(typeof(Action), this, method))();
        }
    }

    public sealed class GameObject : Object
    {
        public readonly string name;
        public readonly Transform transform = new Transform();
        public bool activeSelf { get; private set; }
        public GameObject(string name) { this.name = name; }
        public void SetActive(bool value) { activeSelf = value; }
    }

    public sealed class Transform : Component
    {
        public Vector3 position { get; set; }
    }

    public struct Vector3
    {
        public float x, y, z;
        public Vector3(float x, float y, float z) { this.x = x; this.y = y; this.z = z; }
        public static Vector3 Lerp(Vector3 a, Vector3 b, float t) { return new Vector3(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.z + (b.z - a.z) * t); }
    }

    public static class Mathf
    {
        public static float Exp(float power) { return (float)Math.Exp(power); }
    }

    public static class Time
    {
        public static float fixedDeltaTime { get { return 0.02f; } }
        public static float deltaTime { get { return 0.02f; } }
    }

    // Not used: a name of ours that is also one of Unity's would be ambiguous, and here it is.
    public enum EventType { MouseDown, MouseUp }

    public enum LogType { Error, Assert, Warning, Log, Exception }

    public static class Input
    {
        public static readonly Dictionary<string, float> Axes = new Dictionary<string, float>();

        public static float GetAxisRaw(string axisName)
        {
            float value;
            return Axes.TryGetValue(axisName, out value) ? value : 0;
        }
    }

    public static class Debug
    {
        public static readonly List<string> Lines = new List<string>();
        public static void Log(object message) { Lines.Add("" + message); }
        public static void LogWarning(object message) { Lines.Add("warning: " + message); }
    }
}

#if UNITY_5_3_OR_NEWER
namespace AOT
{
    [AttributeUsage(AttributeTargets.Method)]
    public class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { }
    }
}
#endif
